"""Concatenations that rotate or wrap an array, which the partitioner takes as one operation."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.sharding.roles import keeps_elements

_STEPS = 4


def concatenation_of(piece: Instruction) -> Instruction | None:
    """The concatenation of several pieces of one array that a piece is for.

    A piece is a slice, perhaps changed element by element or reversed, with one user. None for
    what is no piece. O(operands of the concatenation).
    """
    at = piece
    while at.opcode is Opcode.SLICE or keeps_elements(at):
        user = next(iter(at.users), None)
        if user is None or len(at.users) != 1:
            return None
        if user.opcode is Opcode.CONCATENATE:
            array = _array_of(piece)
            pieces = sum(array is not None and _array_of(o) is array for o in user.operands)
            return user if pieces > 1 else None
        at = user
    return None


def _array_of(piece: Instruction) -> Instruction | None:
    """The array that a piece was cut from."""
    for _ in range(_STEPS):
        if piece.opcode is Opcode.SLICE:
            return piece.operands[0]
        if not keeps_elements(piece):
            return None
        piece = piece.operands[0]
    return None
