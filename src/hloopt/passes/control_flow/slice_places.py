"""Notes on where dynamic slices are in each trip of a loop, for XLA:GPU: `dynamic_slice_config`.

A slice is `byte_offset` bytes into its array, and `byte_stride` further on in each trip of the loop
that is `loop_index` loops out from it; without a `loop_index` it is at one place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from hloopt.ir.attributes.backend_config import (
    DYNAMIC_SLICE_CONFIG,
    backend_config,
    without_field,
)
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


def restate_slices(body: Iterable[Instruction], *, later: int, factor: int) -> None:
    """State where slices of a loop's body are whose first trip was so many trips `later`.

    Further trips are `factor` times as far apart; 0 for what runs once. Notes on loops further out
    go, and all in computations that are called in several places. O(instructions of the body and of
    what it calls).
    """
    for instruction, depth, is_own in _with_called(body):
        config = backend_config(instruction) if _has_note(instruction) else {}
        note = config.get(DYNAMIC_SLICE_CONFIG)
        if not isinstance(note, dict) or "loop_index" not in note:
            continue
        numbers = [_number(note.get(name, 0)) for name in _FIELDS]
        if None in numbers:
            continue
        index, offset, stride = (number or 0 for number in numbers)
        if not is_own or index > depth:
            _forget(instruction)
        elif index == depth:
            moved = _note(note, offset + later * stride, factor * stride)
            text = json.dumps({**config, DYNAMIC_SLICE_CONFIG: moved}, separators=(",", ":"))
            instruction.set_attribute("backend_config", text)


def forget_slices(condition: Iterable[Instruction]) -> None:
    """Drop the notes in a loop's condition, which runs once more than the body."""
    for instruction, _, _ in _with_called(condition):
        if _has_note(instruction):
            _forget(instruction)


_FIELDS = ("loop_index", "byte_offset", "byte_stride")


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


def _note(note: dict[str, Any], offset: int, stride: int) -> dict[str, Any]:
    """The note with another offset and stride, each a string where it was one."""
    found = {
        **note,
        "byte_offset": type(note.get("byte_offset", 0))(offset),
        "byte_stride": type(note.get("byte_stride", 0))(stride),
    }
    if not stride:
        del found["loop_index"]
    return found


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
