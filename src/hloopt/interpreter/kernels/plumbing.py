"""Constants, tuples, tokens, copies and outfeeds: values handed on as they are."""

from __future__ import annotations

from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.literals import literal_value
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.stand_ins import made_up_constant
from hloopt.interpreter.values import Value
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import format_shape


@kernel(Opcode.CONSTANT, calls=True)
def constant(plans: Plans, instruction: Instruction) -> Value:
    if plans.stand_ins and ELIDED in instruction.payload:
        sizes = format_shape(instruction.shape, layout=False)
        plans.made_up.setdefault(f"constant {sizes} of {{...}}", instruction)
        return made_up_constant(instruction.shape)
    return literal_value(instruction.payload, instruction.shape)


@kernel(Opcode.TUPLE)
def make_tuple(instruction: Instruction, *operands: Value) -> Value:
    return operands


@kernel(Opcode.GET_TUPLE_ELEMENT)
def get_tuple_element(instruction: Instruction, operand: Value) -> Value:
    return operand[instruction.tuple_index]


@kernel(Opcode.AFTER_ALL)
def after_all(instruction: Instruction, *operands: Value) -> Value:
    return None


@kernel(Opcode.COPY, Opcode.DOMAIN, Opcode.ADD_DEPENDENCY, Opcode.OPT_BARRIER)
def same(instruction: Instruction, operand: Value, *dependencies: Value) -> Value:
    return operand


@kernel(Opcode.COPY_START)
def copy_start(instruction: Instruction, operand: Value) -> Value:
    return operand, operand, None


@kernel(Opcode.COPY_DONE)
def copy_done(instruction: Instruction, started: Value) -> Value:
    return started[0]


@kernel(Opcode.OUTFEED)
def outfeed(instruction: Instruction, operand: Value, token: Value) -> Value:
    """A token; nobody takes the data."""
    return None
