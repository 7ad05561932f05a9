"""The buffers that instructions hold, pass on and read, within one computation."""

from __future__ import annotations

from hloopt.analysis.dataflow.forwarding import Forward, forwards_of
from hloopt.analysis.dataflow.slots import slots_of
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.attributes.typed import fusion_kind_of

LOOKED_THROUGH = (Opcode.BITCAST, Opcode.GET_TUPLE_ELEMENT)
"""Aliases whose users can read a new value instead."""


def passed_on(instruction: Instruction) -> list[Forward]:
    """The parts of a result that are buffers of operands, called computations not looked into.

    A loop's result is its operand's buffers. O(operands). Raises HloVerifyError for shapes that do
    not fit.
    """
    match instruction.opcode:
        case Opcode.CALL:
            return []
        case Opcode.WHILE:
            return [_whole(instruction)]
        case Opcode.ASYNC_START:
            parent = instruction.parent
            return [f for f in forwards_of(instruction) if f.source.parent is parent]
        case Opcode.ASYNC_UPDATE:
            return [_whole(instruction)]
        case Opcode.ASYNC_DONE:
            return [_result_of_operation(instruction)]
    return forwards_of(instruction)


def _whole(instruction: Instruction) -> Forward:
    source = instruction.operands[0]
    widths = (len(slots_of(i.shape).parts) for i in (instruction, source))
    return Forward(0, source, 0, min(widths))


def _result_of_operation(done: Instruction) -> Forward:
    source = done.operands[0]
    part = slots_of(source.shape).element(1)
    return Forward(0, source, part.start, part.stop - part.start)


class UnreadOperands:
    """The operands of loop fusions that these do not read. Each fused computation is asked once."""

    def __init__(self) -> None:
        self._numbers: dict[Computation, frozenset[int]] = {}

    def of(self, fusion: Instruction) -> frozenset[int]:
        """The numbers of operands without a reader in the fusion. O(fused instructions)."""
        if fusion_kind_of(fusion) != "kLoop":
            return _NONE
        fused = fusion.called[0]
        found = self._numbers.get(fused)
        if found is None:
            unread = (p.parameter_number for p in fused.parameters if not p.users and not p.is_root)
            found = self._numbers[fused] = frozenset(unread)
        return found


_NONE: frozenset[int] = frozenset()
