"""The state of a while loop: what its body makes of each element."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


def is_handed_on(loop: Instruction, index: int) -> bool:
    """Whether every trip of a loop leaves an element of its state as it is."""
    if loop.opcode is not Opcode.WHILE:
        return False
    root = loop.called[0].root
    if root.opcode is Opcode.PARAMETER:
        return True
    if root.opcode is not Opcode.TUPLE:
        return False
    value = root.operands[index]
    while only_copies(value):
        value = value.operands[0]
    return (
        value.opcode is Opcode.GET_TUPLE_ELEMENT
        and value.tuple_index == index
        and value.operands[0].opcode is Opcode.PARAMETER
    )


def only_copies(value: Instruction) -> bool:
    """Whether an instruction gives its operand again, perhaps in another buffer."""
    return value.opcode is Opcode.COPY or (
        value.opcode is Opcode.BITCAST and value.shape is value.operands[0].shape
    )
