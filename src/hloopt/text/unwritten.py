"""Instructions that a text implies: parameters, elements, what an `X-start` wraps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape


def unwritten_instruction(
    computation: Computation,
    name: str,
    opcode: Opcode,
    operands: Sequence[Instruction] = (),
    attributes: Mapping[str, str] | None = None,
) -> Instruction:
    """An instruction as the readers make them, without a shape and in no computation's list."""
    instruction = Instruction()
    instruction.parent = computation
    instruction.name = name
    instruction.opcode = opcode
    instruction.operands = list(operands)
    instruction.attributes = attributes or {}
    instruction.text = None
    return instruction


def unwritten_parameter(
    computation: Computation, name: str, number: int, shape: Shape
) -> Instruction:
    """A parameter, in no computation's list."""
    parameter = unwritten_instruction(computation, name, Opcode.PARAMETER)
    parameter.shape = shape
    parameter.payload = str(number)
    return parameter
