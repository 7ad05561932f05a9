"""Opcodes whose written shape XLA replaces, wholly or in part, when it reads them."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape

IMPLIED_SHAPE = frozenset(
    (
        *(Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV, Opcode.RECV_DONE, Opcode.INFEED),
        *(Opcode.AFTER_ALL, Opcode.ADD_DEPENDENCY, Opcode.OUTFEED),
    )
)
"""Opcodes whose shape follows from the operands, or from the first element of what is written."""


def implied_shape(instruction: Instruction, stated: Shape | None) -> Shape | None:
    """The shape of an instruction of `IMPLIED_SHAPE`; None where its operands do not tell."""
    token = array_shape("token")
    operands = [operand.shape for operand in instruction.operands]
    match instruction.opcode:
        case Opcode.AFTER_ALL | Opcode.SEND_DONE | Opcode.OUTFEED:
            return token
        case Opcode.SEND if operands:
            return tuple_shape((operands[0], array_shape("u32"), token))
        case Opcode.RECV_DONE if operands and operands[0].elements:
            return tuple_shape((operands[0].elements[0], token))
        case Opcode.ADD_DEPENDENCY if len(operands) == 2:
            return operands[0]
        case Opcode.RECV if stated and stated.elements:
            return tuple_shape((stated.elements[0], array_shape("u32"), token))
        case Opcode.INFEED if stated and stated.elements:
            return tuple_shape((stated.elements[0], token))
        case _:
            return None
