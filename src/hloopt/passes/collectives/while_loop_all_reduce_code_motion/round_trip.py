"""Whether operations that rearrange a value, one after the other, give it back as it was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

REARRANGING = frozenset((Opcode.RESHAPE, Opcode.BITCAST, Opcode.TRANSPOSE))


class _Move(NamedTuple):
    opcode: Opcode
    before: tuple[object, ...]
    """The form of what it takes: sizes, or of a transpose the order of the dimensions."""
    after: tuple[object, ...]


def gives_back(operations: Iterable[Instruction]) -> bool:
    """Whether the value that goes through the operations in order comes out as it went in.

    What changes no positions does not count; a dynamic-update-slice puts back what the
    dynamic-slice before it took, if nothing is left of what was done in between. Where it is not
    plain the answer is no. O(operations · rank).
    """
    moves: list[_Move] = []
    for operation in operations:
        move = _move_of(operation)
        if move is None:
            continue
        if operation.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            if not moves or moves.pop().opcode is not Opcode.DYNAMIC_SLICE:
                return False
            continue
        if moves and moves[-1].opcode is move.opcode:
            move = _composed(moves.pop(), move)
        if move.before != move.after:
            moves.append(move)
    return not moves


def _move_of(operation: Instruction) -> _Move | None:
    match operation.opcode:
        case Opcode.RESHAPE as opcode:
            return _Move(opcode, operation.operands[0].shape.dimensions, operation.shape.dimensions)
        case Opcode.BITCAST as opcode:
            before, after = operation.operands[0].shape, operation.shape
            return _Move(
                opcode, (before.dimensions, before.layout), (after.dimensions, after.layout)
            )
        case Opcode.TRANSPOSE as opcode:
            order = dimensions_of(operation)
            return _Move(opcode, tuple(range(len(order))), order)
        case Opcode.DYNAMIC_SLICE | Opcode.DYNAMIC_UPDATE_SLICE as opcode:
            return _Move(opcode, (), (operation,))
        case _:
            return None


def _composed(first: _Move, second: _Move) -> _Move:
    if first.opcode is not Opcode.TRANSPOSE:
        return _Move(first.opcode, first.before, second.after)
    permuted = dict(zip(second.before, first.after, strict=True))
    return _Move(first.opcode, first.before, tuple(permuted[d] for d in second.after))
