"""Changes of one operation of a large program, of the kinds that move the loss of a step."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from hloopt.equivalence.coverage import CALLERS
from hloopt.interpreter.literals import literal_value
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first
from hloopt.ir.shapes.shape import array_shape
from hloopt.ir.sources.source_stacks import op_name_of

_KINDS = frozenset(
    (Opcode.ADD, Opcode.MULTIPLY, Opcode.SUBTRACT, Opcode.DIVIDE, Opcode.DOT, Opcode.RSQRT)
)


class Planted(NamedTuple):
    """A module with a change, and the operation that has it."""

    kind: str
    instruction: str
    op_name: str


def scaled(module: Module, dice: random.Random) -> Planted:
    """Multiply the result of an operation by 1.001."""
    place = dice.choice([i for i in _places(module) if i.users])
    users = list(place.users)
    product = _times(place, 1.001)
    for user in users:
        user.exchange_operand(place, product)
    return Planted("scaled", place.name, op_name_of(place))


def with_other_constant(module: Module, dice: random.Random) -> Planted:
    """Make a constant that an operation adds or multiplies by half as large again."""
    found = [
        (place, number, source)
        for place in _places(module)
        for number, operand in enumerate(place.operands)
        for source in [operand.operands[0] if operand.opcode is Opcode.BROADCAST else operand]
        if source.opcode is Opcode.CONSTANT and float(literal_value(source.payload, source.shape))
        if source.shape.is_scalar and abs(float(literal_value(source.payload, source.shape))) < 1e9
    ]
    place, number, source = dice.choice(found)
    value = float(literal_value(source.payload, source.shape)) * 1.5
    constant = place.parent.add(Opcode.CONSTANT, source.shape, payload=repr(value))
    operand = place.operands[number]
    if operand is source:
        place.replace_operand(number, constant)
    else:
        place.replace_operand(number, place.parent.add_clone(operand, [constant]))
    return Planted("other constant", place.name, op_name_of(place))


def with_operands_swapped(module: Module, dice: random.Random) -> Planted:
    """Swap the operands of a subtraction or a division."""
    kinds = (Opcode.SUBTRACT, Opcode.DIVIDE)
    place = dice.choice([i for i in _places(module) if i.opcode in kinds])
    place.set_operands(place.operands[::-1])
    return Planted("operands swapped", place.name, op_name_of(place))


def rounded(module: Module, dice: random.Random) -> Planted:
    """Convert the result of an operation to bf16 and back."""
    place = dice.choice([i for i in _places(module) if i.users])
    users = list(place.users)
    narrow = place.parent.add(Opcode.CONVERT, place.shape.with_element_type("bf16"), [place])
    wide = place.parent.add(Opcode.CONVERT, place.shape, [narrow])
    for user in users:
        user.exchange_operand(place, wide)
    return Planted("rounded", place.name, op_name_of(place))


PLANTS: tuple[Callable[[Module, random.Random], Planted], ...] = (
    scaled,
    with_other_constant,
    with_operands_swapped,
    rounded,
)


def _places(module: Module) -> list[Instruction]:
    """Operations on floats with an op_name, that the outputs depend on, and that run as a whole."""
    return [
        instruction
        for computation in module.computations.values()
        if all(caller.opcode in CALLERS for caller in computation.callers)
        for instruction in depth_first([computation.root], lambda i: i.operands)
        if instruction.opcode in _KINDS and op_name_of(instruction)
        if instruction.shape.type_name == "f32" and instruction.shape.element_count() > 1
    ]


def _times(value: Instruction, factor: float) -> Instruction:
    computation, shape = value.parent, value.shape
    scalar = array_shape(shape.type_name, ())
    constant = computation.add(Opcode.CONSTANT, scalar, payload=repr(factor))
    attributes = {"dimensions": "{}"}
    factors = computation.add(Opcode.BROADCAST, shape, [constant], attributes=attributes)
    return computation.add(Opcode.MULTIPLY, shape, [value, factors])
