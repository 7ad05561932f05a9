"""Notes on where dynamic slices are in each trip of a loop, for XLA:GPU: `dynamic_slice_config`.

A slice is `byte_offset` bytes into its array, and `byte_stride` further on in each trip of the loop
that is `loop_index` loops out from it; without a `loop_index` it is at one place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hloopt.ir.attributes.backend_config import (
    DYNAMIC_SLICE_CONFIG,
    backend_config,
    without_field,
)
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.element_type import ELEMENT_TYPES


def restate_slices(body: Iterable[Instruction], *, later: int, factor: int) -> None:
    """State where slices of a loop's body are whose first trip was so many trips `later`.

    Further trips are `factor` times as far apart; 0 for what runs once. Notes on other loops stay,
    but all in computations that are called in several places go. O(instructions of the body and of
    what it calls).
    """
    for instruction, depth, is_own in _with_called(body):
        note = _Note.of(instruction)
        if note is None or note.loop is None:
            continue
        if not is_own:
            _forget(instruction)
        elif note.loop == depth:
            stride = factor * note.stride
            loop = note.loop if stride else None
            _write(instruction, _Note(loop, note.offset + later * note.stride, stride))


def leave_loop(left: Iterable[Instruction], *, trip: int = 0) -> None:
    """State where slices are that are taken outside of the innermost loop around them now, as they
    were in one trip of it. O(instructions and what they call).

    Notes in computations that are called in several places go.
    """
    for instruction, depth, is_own in _with_called(left):
        note = _Note.of(instruction)
        if note is None or note.loop is None or note.loop < depth:
            continue
        if not is_own:
            _forget(instruction)
        elif note.loop == depth:
            _write(instruction, _Note(None, note.offset + trip * note.stride, 0))
        else:
            _write(instruction, note._replace(loop=note.loop - 1))


def forget_slices(instructions: Iterable[Instruction]) -> None:
    """Drop the notes in instructions and in what they call: in a loop's condition, which runs once
    more than the body, and where arrays get another shape."""
    for instruction, _, _ in _with_called(instructions):
        if _has_note(instruction):
            _forget(instruction)


def has_notes(instructions: Iterable[Instruction]) -> bool:
    """Whether there are notes in instructions, or in what they call."""
    return any(_has_note(instruction) for instruction, _, _ in _with_called(instructions))


class NotedTypes:
    """The types of the arrays that a module's notes are on, before a pass changes some."""

    def __init__(self, module: Module) -> None:
        """O(instructions)."""
        self._types = {i: _types(i) for i in module.instructions() if _has_note(i)}

    def restate(self) -> None:
        """State where slices are whose elements take more bytes now, or fewer. O(notes)."""
        for instruction, before in self._types.items():
            after = _types(instruction)
            if before == after or instruction not in instruction.parent:
                continue
            note = _Note.of(instruction)
            if note is None or instruction.opcode not in _SLICES:
                _forget(instruction)
                continue
            sizes = [ELEMENT_TYPES[types[0]].bits for types in (before, after)]
            products = [number * sizes[1] for number in (note.offset, note.stride)]
            if min(sizes) < _BYTE or any(product % sizes[0] for product in products):
                _forget(instruction)
                continue
            offset, stride = (product // sizes[0] for product in products)
            _write(instruction, _Note(note.loop, offset, stride))


class _Note(NamedTuple):
    """The numbers of a note."""

    loop: int | None
    """The `loop_index`; None for a slice at one place."""
    offset: int
    stride: int

    @classmethod
    def of(cls, instruction: Instruction) -> _Note | None:
        """The note on an instruction; None where it has none that can be read."""
        if not _has_note(instruction):
            return None
        note = backend_config(instruction).get(DYNAMIC_SLICE_CONFIG)
        if not isinstance(note, dict):
            return None
        numbers = [_number(note.get(name, 0)) for name in _FIELDS]
        if None in numbers:
            return None
        loop, offset, stride = (number or 0 for number in numbers)
        return cls(loop if _FIELDS[0] in note else None, offset, stride)


_FIELDS = ("loop_index", "byte_offset", "byte_stride")
_SLICES = (Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE)
_BYTE = 8


def _types(instruction: Instruction) -> list[str]:
    """The element types of the operands, the array of a slice first."""
    return [operand.shape.type_name for operand in instruction.operands]


def _has_note(instruction: Instruction) -> bool:
    return DYNAMIC_SLICE_CONFIG in instruction.attributes.get("backend_config", "")


def _forget(instruction: Instruction) -> None:
    instruction.set_attribute("backend_config", without_field(instruction, DYNAMIC_SLICE_CONFIG))


def _number(value: object) -> int | None:
    """A field as an integer, which JSON may have as a string; None where it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None


def _write(instruction: Instruction, note: _Note) -> None:
    """Write a note with other numbers, each a string where it was one."""
    config = backend_config(instruction)
    given = config[DYNAMIC_SLICE_CONFIG]
    found = {**given}
    for name, number in zip(_FIELDS, note, strict=True):
        if number is None:
            found.pop(name, None)
        elif name in given or number:
            found[name] = type(given.get(name, 0))(number)
    text = json.dumps({**config, DYNAMIC_SLICE_CONFIG: found}, separators=(",", ":"))
    instruction.set_attribute("backend_config", text)


def _with_called(body: Iterable[Instruction]) -> Iterator[tuple[Instruction, int, bool]]:
    """The instructions of a body and of what it calls, with the number of loops between, and
    whether they run in one place only."""
    stack = [(instruction, 0, True) for instruction in body]
    seen: set[Computation] = set()
    while stack:
        instruction, depth, is_own = stack.pop()
        yield instruction, depth, is_own
        deeper = depth + (instruction.opcode is Opcode.WHILE)
        for called in instruction.called:
            if called in seen:
                continue
            seen.add(called)
            own = is_own and len(called.callers) == 1
            stack += [(each, deeper, own) for each in called.instructions]
