"""Files of measured collectives and products, as XLA:GPU reads them: text protos, or JSON.

They are the message `xla.gpu.DeviceHloInstructionProfiles`, which XLA's own tools write:

entries { key: "sm_90" value {
  entries { instruction { opcode: "all-gather" … } network_throughput_bytes_per_sec: 14185281385 }
  entries { instruction { opcode: "dot" … } operands { … } operands { … } clock_cycles: 9000 }
} }

XLA:GPU leaves out a file it cannot read, without a word; here its mistake is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any, TypeVar

from hloopt.analysis.latency.collective_tables import Exchange, Groups, UserTable, permute_kind
from hloopt.analysis.latency.files import load_json
from hloopt.analysis.latency.matmul_tables import Matmul, UserMatmuls
from hloopt.analysis.latency.network import reach_of
from hloopt.analysis.latency.text_proto import Fields, parse_text_proto
from hloopt.diagnostics import HloError, counted, did_you_mean
from hloopt.ir import Opcode
from hloopt.ir.attributes.values import ReplicaGroups
from hloopt.ir.attributes.values.replica_groups import IotaTile
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.targets.gpu import Gpu

_HELP = (
    'it has entries { key: "sm_90" value { entries { instruction { … } … } } }, XLA\'s message '
    "DeviceHloInstructionProfiles in text form, or the same as JSON"
)
_OPCODES = (
    *(Opcode.ALL_REDUCE, Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL),
    Opcode.COLLECTIVE_PERMUTE,
)
_COUNTED = (Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER)
"""Opcodes of which XLA reads measurements with one dimension only."""
_MOST_DEVICES = 1 << 16
_LARGEST = 1 << 63
Entry = TypeVar("Entry")


def read_collectives(text: str, name: str, gpu: Gpu) -> UserTable:
    """The collectives within a node that a file has of a GPU. Raises HloError."""
    node = gpu.network.partition_size
    entries = _entries(text, name, gpu, lambda entry: _collective(entry, node))
    return UserTable(entry for entry in entries if entry is not None)


def read_matmuls(text: str, name: str, gpu: Gpu) -> UserMatmuls:
    """The products that a file has of a GPU. Raises HloError."""
    return UserMatmuls(_entries(text, name, gpu, lambda entry: _matmul(entry, gpu.clock)))


@dataclass(frozen=True, slots=True)
class _Message:
    """A message of a file."""

    fields: Mapping[str, Any]
    place: str

    def all(self, name: str) -> list[_Message]:
        """The messages of a field."""
        values = self._values(name)
        if any(not isinstance(value, dict) for value in values):
            raise self.refusal(f"{name} takes what stands in braces")
        return [
            _Message(value, self._place_of(value, f"{name}[{number}]"))
            for number, value in enumerate(values)
        ]

    def one(self, name: str) -> _Message:
        """The only message of a field."""
        found = self.all(name)
        if len(found) != 1:
            raise self.refusal(f"{len(found)} times {name}" if found else f"no {name}")
        return found[0]

    def text(self, name: str) -> str:
        """The only word of a field."""
        (value,) = self._values(name) or ("",)
        if not isinstance(value, str) or not value:
            raise self.refusal(f"no {name}")
        return value

    def numbers(self, name: str) -> list[int]:
        """The numbers of a field, which are 0 or more."""
        found = []
        for value in self._values(name):
            word = str(value) if isinstance(value, str | int) else ""
            if not (word.isascii() and word.isdecimal()) or int(word) >= _LARGEST:
                raise self.refusal(f"{name} is {value!r}, not a whole number")
            found.append(int(word))
        return found

    def number(self, name: str, default: int = 0) -> int:
        """The only number of a field."""
        return self.numbers(name)[-1] if self._values(name) else default

    def positive(self, name: str) -> int:
        """The only number of a field, which is more than 0."""
        number = self.number(name)
        if number < 1:
            raise self.refusal(f"no {name}, or 0")
        return number

    def refusal(self, message: str) -> HloError:
        return HloError(f"{self.place}: {message}", help=_HELP)

    def _values(self, name: str) -> list[Any]:
        """The values of a field, by its name or that which JSON has for it."""
        first, *rest = name.split("_")
        value = self.fields.get(name, self.fields.get(first + "".join(map(str.capitalize, rest))))
        if value is None:
            return []
        return value if isinstance(value, list) else [value]

    def _place_of(self, value: Any, part: str) -> str:
        if isinstance(value, Fields):
            return f"{self.place.rpartition(':')[0]}:{value.line}"
        return f"{self.place}{'.' if ':' in self.place else ': '}{part}"


def _entries(text: str, name: str, gpu: Gpu, read: Callable[[_Message], Entry]) -> list[Entry]:
    """The entries of a GPU, read."""
    devices = _devices(text, name)
    wanted = gpu.tables
    keys = [key for key in devices if wanted is None or key.lower() == wanted]
    if len(keys) != 1:
        has = f"it has {', '.join(devices)}" if devices else "it has none at all"
        if wanted is None:
            raise HloError(f"{name}: which of its devices is the target's? {has}", help=_HELP)
        hint = did_you_mean(wanted, devices)
        raise HloError(
            f"{name} has no entries for {wanted}, the target's: {has}", help=hint or _HELP
        )
    values = devices[keys[0]]
    entries = [read(entry) for value in values for entry in value.all("entries")]
    if not entries:
        raise HloError(f"{name} has no measurements of {keys[0]}", help=_HELP)
    return entries


def _devices(text: str, name: str) -> dict[str, list[_Message]]:
    """The lists of entries by device."""
    if text.lstrip().startswith("{"):
        value = load_json(text, name, _HELP)
        assert isinstance(value, dict)
        root = _Message(value, name)
        devices = root.fields.get("entries")
        if not isinstance(devices, dict) or root.fields.keys() - {"entries"}:
            raise HloError(f"{name} is no table of measurements", help=_HELP)
        parts = _Message(devices, f"{name}: entries")
        return {str(key): parts.all(key) for key in devices}
    root = _Message(parse_text_proto(text, name), f"{name}:1")
    if root.fields.keys() != {"entries"}:
        raise HloError(f"{name} is no table of measurements", help=_HELP)
    found: dict[str, list[_Message]] = {}
    for entry in root.all("entries"):
        found[entry.text("key")] = [entry.one("value")]  # the last of a key counts
    return found


def _collective(entry: _Message, node: int) -> tuple[Exchange, int] | None:
    """A collective and its throughput; None for one between nodes, which formulas answer."""
    instruction = entry.one("instruction")
    word = instruction.text("opcode").removesuffix("-start")
    opcode = next((known for known in _OPCODES if known.value == word), None)
    if opcode is None:
        names = [known.value for known in _OPCODES]
        raise HloError(
            f"{instruction.place}: a table of collectives has no {word}",
            help=did_you_mean(word, names) or ", ".join(names),
        )
    element_type, dimensions = _shape(instruction)
    if opcode in _COUNTED and len(dimensions) != 1:
        raise instruction.refusal(f"XLA reads an {word} with one dimension only")
    size = prod(dimensions) * ELEMENT_TYPES[element_type].bytes
    rate = entry.positive("network_throughput_bytes_per_sec")
    if opcode is Opcode.COLLECTIVE_PERMUTE:
        pairs = [
            (pair.number("source"), pair.number("target"))
            for pair in instruction.all("source_target_pairs")
        ]
        if not pairs:
            raise instruction.refusal("no source_target_pairs")
        if any(source // node != target // node for source, target in pairs):
            return None
        return Exchange(opcode, size, 0, permute_kind(pairs), element_type), rate
    groups = _groups(instruction)
    reach = reach_of(groups, node)
    if reach is None:
        raise instruction.refusal(
            f"its groups are not alike on nodes of {node} devices, with which no XLA:GPU takes it"
        )
    if opcode is Opcode.REDUCE_SCATTER:  # its bytes are those that go in
        size *= reach.devices
    exchange = Exchange(opcode, size, reach.devices, "", element_type, groups)
    return (exchange, rate) if reach.nodes == 1 else None


def _groups(instruction: _Message) -> Groups:
    tile = instruction.one("iota_collective_device_list")
    count, size = tile.positive("num_replica_groups"), tile.positive("num_devices_per_group")
    reshape = tile.numbers("iota_reshape_dims") or [count * size]
    order = tile.numbers("iota_transpose_perm") or list(range(len(reshape)))
    is_sound = prod(reshape) == count * size and sorted(order) == list(range(len(reshape)))
    if not is_sound or count * size > _MOST_DEVICES:
        raise tile.refusal("the numbers do not make groups of devices")
    return ReplicaGroups(tile=IotaTile((count, size), tuple(reshape), tuple(order))).lists()


def _matmul(entry: _Message, clock: float) -> tuple[Matmul, float]:
    """A product and its time in microseconds, in whole nanoseconds as in XLA."""
    instruction, operands = entry.one("instruction"), entry.all("operands")
    if (opcode := instruction.text("opcode")) != Opcode.DOT.value:
        raise instruction.refusal(f"a table of products has dots, no {opcode}")
    if len(operands) != 2:
        raise entry.refusal(f"a dot has two operands, not {len(operands)}")
    (lhs, left), (rhs, right) = map(_shape, operands)
    result, _ = _shape(instruction)
    numbers = instruction.one("dot_dimension_numbers")
    taken = {
        side: [numbers.numbers(f"{side}_{kind}_dimensions") for kind in ("batch", "contracting")]
        for side in ("lhs", "rhs")
    }
    for side, shape in (("lhs", left), ("rhs", right)):
        if any(dimension >= len(shape) for part in taken[side] for dimension in part):
            raise numbers.refusal(
                f"{side} has {counted(len(shape), 'dimension')}, not all of these"
            )
    b, k = (prod(left[dimension] for dimension in part) for part in taken["lhs"])
    m, n = (
        prod(size for dimension, size in enumerate(shape) if dimension not in chain(*taken[side]))
        for side, shape in (("lhs", left), ("rhs", right))
    )
    nanoseconds = int(entry.positive("clock_cycles") / (clock / 1e9))
    if nanoseconds < 1:
        raise entry.refusal("clock_cycles are less than a nanosecond")
    return Matmul(b, m, n, k, lhs, rhs, result), nanoseconds / 1e3


def _shape(message: _Message) -> tuple[str, list[int]]:
    """The element type and the dimensions, each 1 or more, of an array."""
    shape = message.one("shape")
    word = shape.text("element_type")
    element_type = word.lower()
    if element_type not in ELEMENT_TYPES or not ELEMENT_TYPES[element_type].bits:
        raise shape.refusal(f"no arrays have the element_type {word}")
    dimensions = shape.numbers("dimensions")
    if 0 in dimensions:
        raise shape.refusal("an empty array takes no time")
    return element_type, dimensions
