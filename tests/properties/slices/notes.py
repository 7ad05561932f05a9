"""Notes on where slices are in each trip of a loop: true ones, and a check that they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hloopt.equivalence import RunSettings
from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.values import Value
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.backend_config import DYNAMIC_SLICE_CONFIG, backend_config
from hloopt.ir.computation import Computation

_SLICES = {Opcode.DYNAMIC_SLICE: 1, Opcode.DYNAMIC_UPDATE_SLICE: 2}
"""The number of the operand at which indices begin."""


class Place(NamedTuple):
    """A slice as it was taken once."""

    offset: int
    """In bytes."""
    trips: tuple[int, ...]
    """The trips of the loops around it, the innermost first."""


def annotate(module: Module) -> int:
    """Note on the slices of a module where they are, if that is one place, or so many bytes further
    on in each trip of one loop; the number of notes."""
    count = 0
    for instruction, places in _places(module).items():
        depth = min(len(place.trips) for place in places)
        notes = (*(_note(places, index) for index in range(depth)), _fixed(places))
        note = next(filter(None, notes), None)
        if note is not None:
            config = {**backend_config(instruction), DYNAMIC_SLICE_CONFIG: note}
            instruction.set_attribute("backend_config", json.dumps(config))
            count += 1
    return count


def false_notes(module: Module) -> list[str]:
    """The notes of a module that are not true of a slice as it is taken."""
    return [
        f"%{instruction.name}: {note} is not true of {place}"
        for instruction, places in _places(module).items()
        if (note := backend_config(instruction).get(DYNAMIC_SLICE_CONFIG)) is not None
        for place in places
        if not _holds(note, place)
    ]


def _note(places: list[Place], index: int) -> dict[str, int] | None:
    first = places[0]
    later = next((p for p in places if p.trips[index] != first.trips[index]), None)
    stride = 16  # where a single trip is made any is true
    if later is not None:
        stride = (later.offset - first.offset) // (later.trips[index] - first.trips[index])
    offset = first.offset - first.trips[index] * stride
    note = {"loop_index": index, "byte_offset": offset, "byte_stride": stride}
    return note if stride and all(_holds(note, place) for place in places) else None


def _fixed(places: list[Place]) -> dict[str, int] | None:
    note = {"byte_offset": places[0].offset}
    return note if all(_holds(note, place) for place in places) else None


def _holds(note: dict[str, int], place: Place) -> bool:
    offset, stride = (int(note.get(name, 0)) for name in ("byte_offset", "byte_stride"))
    if "loop_index" not in note:
        return stride == 0 and place.offset == offset
    index = int(note["loop_index"])
    return index < len(place.trips) and place.offset == offset + stride * place.trips[index]


def _places(module: Module) -> dict[Instruction, list[Place]]:
    """Where slices are taken as the module runs. Raises RunError."""
    watch = _Watch(module)
    settings = RunSettings(seeds=1)
    settings.run_made_up(settings.place(module), 0, watch)
    return watch.places


class _Watch:
    """Follows the loops of each device, and the slices that are taken in them."""

    def __init__(self, module: Module) -> None:
        self.places: dict[Instruction, list[Place]] = {}
        self._values: dict[tuple[Device, Instruction], Value] = {}
        self._loops: dict[Device, list[tuple[Computation, int]]] = {}
        self._conditions = {w.called[1].root for w in module.instructions(Opcode.WHILE)}

    def __call__(self, device: Device, instruction: Instruction, value: Value) -> None:
        self._values[device, instruction] = value
        loops = self._loops.setdefault(device, [])
        if instruction.opcode is Opcode.WHILE and loops:
            loops.pop()
        if instruction in self._conditions:
            computation = instruction.parent
            trip = -1
            if loops and loops[-1][0] is computation:
                trip = loops.pop()[1]
            loops.append((computation, trip + 1))
        if instruction.opcode in _SLICES:
            trips = tuple(trip for _, trip in reversed(loops))
            self.places.setdefault(instruction, []).append(
                Place(sum(self._offsets(device, instruction)), trips)
            )

    def _offsets(self, device: Device, instruction: Instruction) -> Iterator[int]:
        array = instruction.operands[0].shape
        sliced = (
            instruction if instruction.opcode is Opcode.DYNAMIC_SLICE else instruction.operands[1]
        )
        starts = [
            int(np.asarray(self._values[device, index]))
            for index in instruction.operands[_SLICES[instruction.opcode] :]
        ]
        assert array.element_type is not None
        size = max(array.element_type.bits // 8, 1)
        for dimension in array.layout.minor_to_major:
            most = array.dimensions[dimension] - sliced.shape.dimensions[dimension]
            yield size * min(max(starts[dimension], 0), most)
            size *= array.dimensions[dimension]
