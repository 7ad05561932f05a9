"""The line of one instruction, without a look at its module."""

from __future__ import annotations

from hloopt.analysis.source_lines.moving import moves
from hloopt.ir.instruction import Instruction
from hloopt.ir.sources.source_stacks import stack_of

_FARTHEST = 32


def line_nearby(instruction: Instruction) -> str:
    """`model.py:12` of an instruction's metadata, or of what it only moves; else nothing.

    For a remark of a pass while the module changes. O(1): at most 32 instructions are looked at.
    """
    for _ in range(_FARTHEST):
        stack = stack_of(instruction)
        if stack is not None:
            return stack.user_frame.text
        if not (moves(instruction) and instruction.operands):
            break
        instruction = instruction.operands[0]
    return ""
