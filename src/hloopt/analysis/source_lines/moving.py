"""The instructions that give what an operand gives, in another form or place."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import COLLECTIVES, Opcode

_GATHERS = {Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.ALL_GATHER_DONE}
_MOVES = (COLLECTIVES - _GATHERS) | {
    *(Opcode.COPY, Opcode.COPY_START, Opcode.COPY_DONE, Opcode.BITCAST, Opcode.BITCAST_CONVERT),
    *(Opcode.CONVERT, Opcode.RESHAPE, Opcode.TRANSPOSE, Opcode.REVERSE),
    *(Opcode.GET_TUPLE_ELEMENT, Opcode.PARAMETER),
    *(Opcode.OPT_BARRIER, Opcode.DOMAIN, Opcode.ADD_DEPENDENCY, Opcode.ASYNC_DONE),
}
"""Opcodes whose result is their first operand in another form or place.

What is broadcast, sliced or gathered is so for what uses it: `tools/source_agreement.py` finds that
those are at the line of their users, these at that of their operands.
"""
SAME_TUPLE = frozenset((Opcode.COPY, Opcode.OPT_BARRIER, Opcode.DOMAIN))
"""Opcodes whose result has the elements of their operand."""


def is_kept(loop: Instruction, number: int) -> bool:
    """Whether each iteration of a loop passes an element of its state on as it is."""
    root = loop.called[0].root
    if root.opcode is not Opcode.TUPLE:
        return False
    element = root.operands[number]
    while element.opcode is Opcode.COPY:
        element = element.operands[0]
    return (
        element.opcode is Opcode.GET_TUPLE_ELEMENT
        and element.operands[0].opcode is Opcode.PARAMETER
        and element.tuple_index == number
    )


def moves(instruction: Instruction) -> bool:
    """Whether the value is that of an operand in another form or place."""
    if instruction.opcode is Opcode.FUSION:  # one that was removed calls nothing
        return any(computation.root.opcode in _MOVES for computation in instruction.called)
    return instruction.opcode in _MOVES
