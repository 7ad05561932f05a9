"""Planted errors: one operation whose results are four units in the last place too large."""

from __future__ import annotations

import random

from hloopt.equivalence.path_types import NARROW, PathTypes
from hloopt.interpreter.values import dtype_of, float_info
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first
from hloopt.ir.shapes.shape import array_shape

UNITS = 4
_KINDS = frozenset(
    (
        *(Opcode.ADD, Opcode.MULTIPLY, Opcode.DOT, Opcode.EXPONENTIAL, Opcode.TANH, Opcode.REDUCE),
        *(Opcode.SUBTRACT, Opcode.DIVIDE, Opcode.CONVERT, Opcode.NEGATE, Opcode.RSQRT),
    )
)


def _is_given(instruction: Instruction) -> bool:
    """Whether a value depends on the inputs."""
    before = depth_first([instruction], lambda i: i.operands)
    return any(i.opcode is Opcode.PARAMETER for i in before)


def plant(module: Module, dice: random.Random) -> Instruction | None:
    """Make one operation of the entry on whose path to the outputs a narrow type is off by UNITS
    of that type; None where there is none."""
    types = PathTypes(module)
    places = []
    for instruction in module.entry.instructions:
        element = types.narrowest(instruction)
        own = instruction.shape.element_type
        if element is None or own is None or not own.is_floating or element.bits >= NARROW:
            continue
        if instruction.opcode in _KINDS and instruction.users and _is_given(instruction):
            places.append((instruction, element))
    if not places:
        return None
    place, element = dice.choice(places)
    computation, shape = place.parent, place.shape
    factor = 1 + UNITS * float(float_info(dtype_of(element)).eps)
    scalar = array_shape(shape.type_name, ())
    constant = computation.add(Opcode.CONSTANT, scalar, payload=repr(factor))
    factors = computation.add(Opcode.BROADCAST, shape, [constant], attributes={"dimensions": "{}"})
    users = list(place.users)
    product = computation.add(Opcode.MULTIPLY, shape, [place, factors])
    for user in users:
        user.exchange_operand(place, product)
    return place
