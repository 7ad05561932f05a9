"""Marks that one round of the pipeliner leaves in the module for the next."""

from __future__ import annotations

from hloopt.ir.custom_targets import MOVED, SUNK
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import array_shape
from hloopt.pass_framework.base import PassContext
from hloopt.passes.collectives.collective_pipeliner.options import is_custom_call


def mark_moved(value: Instruction, level: int) -> Instruction:
    """A value, marked for the round that operates on `level`."""
    number = value.parent.add(Opcode.CONSTANT, array_shape("s64"), payload=str(level))
    return _marked(value, [value, number], MOVED)


def mark_sunk(value: Instruction) -> Instruction:
    """A stacked value, marked."""
    return _marked(value, [value], SUNK)


def _marked(value: Instruction, operands: list[Instruction], target: str) -> Instruction:
    attributes = {"custom_call_target": f'"{target}"'}
    return value.parent.add(Opcode.CUSTOM_CALL, value.shape, operands, attributes=attributes)


def level_of(value: Instruction) -> int | None:
    """The level a value is marked with; None where it is not marked."""
    if not is_custom_call(value, MOVED) or len(value.operands) != 2:
        return None
    level = value.operands[1].payload.strip()
    return int(level) if level.isdecimal() else None


def unmarked(value: Instruction) -> Instruction:
    """The instruction that a mark stands for; any other instruction itself."""
    return value.operands[0] if level_of(value) is not None else value


def remove_marks(module: Module, context: PassContext) -> int:
    """Let what was moved stand for its marks; how many there were. O(instructions)."""
    marks = [i for i in module.instructions(Opcode.CUSTOM_CALL) if level_of(i) is not None]
    removed = 0
    for mark in marks:
        if not context.apply(mark, "replaced by what it marks", remark=False):
            break
        removed += 1
        mark.replace_all_uses_with(mark.operands[0])
        mark.parent.remove(mark)
    return removed
