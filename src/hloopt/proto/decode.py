"""HloModuleProto to IR: the same module as its text would be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from hloopt.collector import collector_paused
from hloopt.diagnostics import HloError, HloSyntaxError, Source, counted, did_you_mean
from hloopt.ir.attributes.explicit import default_comparison_type
from hloopt.ir.attributes.opcode_attributes import allowed_attributes
from hloopt.ir.attributes.values import format_int_lists
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.module import Module
from hloopt.ir.opcode import OPCODES, Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.patterns import pattern
from hloopt.proto.attributes import read_attributes
from hloopt.proto.header import read_header
from hloopt.proto.literals import read_literal
from hloopt.proto.schema import message
from hloopt.proto.shapes import ShapeReader
from hloopt.text.async_rules import check_called, check_context_shape, thread_of
from hloopt.text.fast_lane import link_control
from hloopt.text.implied_shapes import IMPLIED_SHAPE, implied_shape
from hloopt.text.unique_names import make_names_unique

_ILLEGAL = pattern(r"[^A-Za-z0-9_.\-]")
_NAME = pattern(r"[A-Za-z_]")
Found = TypeVar("Found")


def decode(data: bytes, name: str = "<proto>") -> Module:
    """The module in a serialized HloModuleProto, or in a message that has one as its first field.

    Those are HloProto, as `--xla_dump_hlo_as_proto` writes it, and the snapshots. `name` is what
    messages call the data. O(length of the data). Raises HloError.
    """
    proto = _parse(data, name)
    with _within(name), collector_paused():
        module = decode_module(proto)
    module.source = Source(name, "")  # says where it comes from; there is no text to show
    return module


_MOST_ENVELOPES = 3
"""A module lies in an HloProto, and that in a snapshot; each envelope is copied once."""


def _parse(data: bytes, name: str) -> Any:
    module, envelope = message("HloModuleProto"), message("Envelope")
    from google.protobuf.message import DecodeError

    inner = data
    try:
        for _ in range(_MOST_ENVELOPES):
            if not _begins_as_message(first := envelope.FromString(inner).hlo_module):
                break
            inner = first
        proto = module.FromString(inner)
    except (DecodeError, RecursionError):
        from hloopt.proto.damage import explain

        raise explain(data, name) from None
    if not proto.computations:
        raise HloSyntaxError(
            f"{name}: not an HloModuleProto or HloProto: no computation in it", code="HLO012"
        )
    return proto


def _begins_as_message(data: bytes) -> bool:
    """Whether the first field is a message, not the name of a module.

    The tags that a module or an HloProto can begin with are control characters.
    """
    return bool(data) and data[0] < 0x20


def decode_module(proto: Any) -> Module:
    """The module in an HloModuleProto message. Raises HloSyntaxError."""
    decoder = _Decoder(proto)
    module = decoder.module
    for computation in proto.computations:
        with _within(f"computation '{computation.name}'"):
            decoder.add_computation(computation)
    entry = decoder.computations.get(proto.entry_computation_id)
    if entry is None:
        raise HloSyntaxError(f"the entry has the id {proto.entry_computation_id}, no computation")
    module.entry = entry
    make_names_unique(module)
    read_header(proto, module, decoder.shapes, decode_module)
    return module


@contextmanager
def _within(place: str) -> Iterator[None]:
    """Put `place` before the message of an error: there is no text to point at."""
    try:
        yield
    except HloError as error:
        raise HloSyntaxError(f"{place}: {error.message}", help=error.help, code="HLO012") from None


class _Decoder:
    """Builds one module; computations are added in the order of the message."""

    def __init__(self, proto: Any) -> None:
        self.module = Module(_legal(proto.name, "module"))
        self.shapes = ShapeReader()
        self.computations: dict[int, Computation] = {}
        self._payloads: Sequence[bytes] = proto.payloads
        self._sequences = proto.schedule.sequences if proto.HasField("schedule") else {}

    def add_computation(self, proto: Any) -> None:
        module = self.module
        if proto.id in self.computations:
            raise HloSyntaxError(f"the id {proto.id} is that of another computation, too")
        name = module.computation_names.unique(_legal(proto.name, "computation"))
        computation = Computation(module, name)
        computation.execution_thread = _plain(proto.execution_thread or "main", "execution thread")
        scope: dict[int, Instruction] = {}
        control_edges: dict[Instruction, list[Instruction]] = {}
        for instruction_proto in proto.instructions:
            if instruction_proto.id in scope:
                raise HloSyntaxError(
                    f"instruction '{instruction_proto.name}' has the id "
                    f"{instruction_proto.id} of another one"
                )
            try:
                instruction = self._instruction(instruction_proto, computation, scope)
            except HloError as error:
                raise HloSyntaxError(
                    f"instruction '{instruction_proto.name}': {error.message}", help=error.help
                ) from None
            if instruction_proto.control_predecessor_ids:
                control_edges[instruction] = [
                    _find(scope, number, "a control predecessor")
                    for number in instruction_proto.control_predecessor_ids
                ]
            scope[instruction_proto.id] = instruction
        link_control(control_edges)
        if proto.root_id not in scope:
            raise HloSyntaxError(f"the root has the id {proto.root_id}, no instruction")
        computation.root = scope[proto.root_id]
        computation.adopt(self._in_order(proto.id, scope))
        names = [instruction.name for instruction in scope.values()]
        module.instruction_names.note(names, " ".join(names))
        self.computations[proto.id] = module.computations[name] = computation

    def _in_order(self, computation_id: int, scope: dict[int, Instruction]) -> list[Instruction]:
        """The instructions in the order of the schedule, or of the message without one."""
        if computation_id not in self._sequences:
            return list(scope.values())
        ids = self._sequences[computation_id].instruction_ids
        if len(ids) != len(scope) or set(ids) != scope.keys():
            raise HloSyntaxError("its schedule is not made of its instructions")
        order = [scope[i] for i in ids]
        seen: set[Instruction] = set()
        for instruction in order:
            if not seen.issuperset((*instruction.operands, *instruction.control_predecessors)):
                raise HloSyntaxError(f"its schedule has '{instruction.name}' before what it needs")
            seen.add(instruction)
        return order

    def _instruction(
        self, proto: Any, computation: Computation, scope: dict[int, Instruction]
    ) -> Instruction:
        opcode = OPCODES.get(proto.opcode)
        if opcode is None:
            raise HloSyntaxError(
                f"unknown opcode '{proto.opcode}'", help=did_you_mean(proto.opcode, OPCODES)
            )
        if self._payloads:
            self._put_payloads(proto)
        instruction = Instruction()
        instruction.parent = computation
        instruction.opcode = opcode
        instruction.name = _legal(proto.name, opcode.value)
        instruction.shape = self.shapes.read(proto.shape)
        instruction.operands = [_find(scope, i, "an operand") for i in proto.operand_ids]
        if opcode in IMPLIED_SHAPE:
            instruction.shape = implied_shape(instruction, instruction.shape) or instruction.shape
        instruction.text = None
        instruction.attributes = attributes = read_attributes(opcode, proto)
        if opcode is Opcode.PARAMETER:
            instruction.payload = str(proto.parameter_number)
        elif opcode is Opcode.CONSTANT:
            instruction.payload = self._literal(proto, instruction.shape)
        elif opcode is Opcode.COMPARE:
            if attributes.get("type") == default_comparison_type(instruction):
                attributes.pop("type", None)
        elif proto.dynamic_slice_sizes and "slice_sizes" in allowed_attributes(opcode):
            attributes["slice_sizes"] = _slice_sizes(proto, instruction.operands)
        for key, value in attributes.items():
            if "\0" in value:
                raise HloSyntaxError(f"{key} has a NUL byte, which text cannot have")
        if opcode in (Opcode.ASYNC_START, Opcode.ASYNC_UPDATE):
            check_context_shape(instruction.shape, opcode.value)
        if opcode not in (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE):
            self._link_called(instruction, proto.called_computation_ids)
        return instruction

    def _put_payloads(self, proto: Any) -> None:
        """Put bytes that stand once for the whole module where they belong."""
        if proto.HasField("backend_config_payload"):
            proto.backend_config = self._payload(proto.backend_config_payload)
        if proto.HasField("metadata") and proto.metadata.HasField("metadata_payload"):
            payload = proto.metadata.metadata_payload
            payload.value = self._payload(payload)

    def _payload(self, proto: Any) -> bytes:
        if proto.WhichOneof("payload_source") != "id":
            found: bytes = proto.value
        elif 0 <= proto.id < len(self._payloads):
            found = self._payloads[proto.id]
        else:
            raise HloSyntaxError(f"the module has no payload {proto.id}")
        return found

    def _literal(self, proto: Any, shape: Shape) -> str:
        if not proto.HasField("literal"):
            return ELIDED
        return read_literal(proto.literal, shape, self.shapes)

    def _link_called(self, instruction: Instruction, ids: Sequence[int]) -> None:
        expected = _called_count(instruction.opcode)
        if instruction.opcode is Opcode.CONDITIONAL:
            expected = max(1, len(instruction.operands) - 1)
        if expected is None:
            if ids:
                raise HloSyntaxError(f"{instruction.opcode} calls no computation")
            return
        called = tuple(_find(self.computations, i, "a called computation") for i in ids)
        if expected and len(called) != expected:
            raise HloSyntaxError(
                f"{instruction.opcode} calls {counted(len(called), 'computation')}, not {expected}"
            )
        instruction.called = called
        for computation in called:
            computation.add_caller(instruction)
        if instruction.opcode is Opcode.ASYNC_START:
            check_called(called)  # XLA reads a second async-start, which no text could say
            called[0].move_to_thread(thread_of(instruction))


@cache
def _called_count(opcode: Opcode) -> int | None:
    """The number of computations that an opcode calls; 0: any number, None: it calls none."""
    naming = [
        attribute
        for attribute in allowed_attributes(opcode).values()
        if attribute.is_reference and attribute.name != "control-predecessors"
    ]
    return sum(attribute.is_required for attribute in naming) if naming else None


def _plain(text: str, what: str) -> str:
    """Return `text`. Raises HloSyntaxError if it cannot stand between quotes without escapes."""
    if not text.isprintable() or '"' in text or "\\" in text:
        raise HloSyntaxError(f"{what} {text!r} cannot stand in text")
    return text


def _legal(name: str, default: str) -> str:
    """`name` with `_` for what cannot stand in a name, as XLA does."""
    name = _ILLEGAL.sub("_", name or default)
    if name.startswith("__") and not name.startswith("__xla_"):
        name = f"_{name.lstrip('_')}"  # names with two are reserved
    return name if _NAME.match(name) else f"_{name[1:]}"


def _find(known: dict[int, Found], number: int, what: str) -> Found:
    found = known.get(number)
    if found is None:
        raise HloSyntaxError(f"{what} has the id {number}, which stands nowhere before it")
    return found


def _slice_sizes(proto: Any, operands: list[Instruction]) -> str:
    """The sizes of a collective-permute's slices, which the message has in one row."""
    sizes = list(proto.dynamic_slice_sizes)
    leaves = operands[0].shape.leaves() if operands else []
    rank = leaves[0].rank if leaves else 0
    if not rank or len(sizes) % rank:
        raise HloSyntaxError(f"{len(sizes)} slice sizes for an operand of {rank} dimensions")
    return format_int_lists(sizes[i : i + rank] for i in range(0, len(sizes), rank))
