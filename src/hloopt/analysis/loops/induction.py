"""The element of a loop's state that counts its trips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hloopt.analysis.loops.expressions import constant_value
from hloopt.analysis.loops.integers import is_integer, wrap
from hloopt.analysis.loops.sources import Source, source_of
from hloopt.ir.attributes.typed import direction_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ", "NE": "NE"}
"""Directions of a comparison whose operands change places."""


_MOST_ADDITIONS = 64


class Comparison(NamedTuple):
    """The condition of a loop: it goes on as long as `element + offset DIRECTION limit`."""

    element: int
    """The element of the state that is compared."""
    offset: int
    direction: str
    limit: int | None
    """None where it is not a constant."""
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class InductionVariable:
    """A scalar integer of a loop's state that every trip adds a constant to."""

    index: int
    """The element of the state."""
    init: int | None
    """Its value in the first trip; None where that is not a constant."""
    step: int


def comparison_of(loop: Instruction) -> Comparison | None:
    """The comparison in a loop's condition, if it is of one integer element of the state."""
    compare, path = source_of(loop.called[1].root)
    if compare.opcode is not Opcode.COMPARE or path:
        return None
    direction = direction_of(compare)
    for value, other, seen_from in (
        (compare.operands[0], compare.operands[1], direction),
        (compare.operands[1], compare.operands[0], MIRRORED.get(direction, direction)),
    ):
        source, offset = plus_constant(value)
        element = source.element_of(loop)
        if element is not None and is_integer(value):
            return Comparison(element, offset, seen_from, constant_value(other), compare)
    return None


def induction_variable(loop: Instruction, index: int) -> InductionVariable | None:
    """An element of a loop's state, if every trip adds the same constant to it."""
    root = loop.called[0].root
    if root.opcode is not Opcode.TUPLE or not is_integer(root.operands[index]):
        return None
    source, step = plus_constant(root.operands[index])
    if source.element_of(loop) != index or source.instruction.parent is not loop.called[0]:
        return None
    return InductionVariable(index, initial_value(loop, index), step)


def lagging_variable(loop: Instruction, index: int) -> InductionVariable | None:
    """An element that takes, in each trip, what an induction variable was in the trip before.

    It is one itself if its initial value fits in.
    """
    root = loop.called[0].root
    if root.opcode is not Opcode.TUPLE:
        return None
    source, offset = plus_constant(root.operands[index])
    leader = source.element_of(loop)
    if leader is None or leader == index:
        return None
    led_by = induction_variable(loop, leader)
    init = initial_value(loop, index)
    if led_by is None or led_by.init is None or init is None:
        return None
    if init + led_by.step != led_by.init + offset:
        return None
    return InductionVariable(index, init, led_by.step)


def initial_value(loop: Instruction, index: int) -> int | None:
    """The initial value of an integer of the state; None where it is not a constant."""
    first = initial_element(loop, index)
    return None if first is None else constant_value(first)


def initial_element(loop: Instruction, index: int) -> Instruction | None:
    """The instruction that gives an element of the state to the first trip, if there is one."""
    init, path = source_of(loop.operands[0])
    return init.operands[index] if init.opcode is Opcode.TUPLE and not path else None


def plus_constant(value: Instruction) -> tuple[Source, int]:
    """A value as another one plus a constant, modulo the size of its type: `x + 2 - 1` is x + 1.

    The constant is 0 where the value is not a sum. O(additions), of which 64 at most
    are looked into.
    """
    total = 0
    source = source_of(value)
    for _ in range(_MOST_ADDITIONS):
        instruction = source.instruction
        if source.path or not is_integer(value):
            break
        if instruction.opcode is Opcode.ADD:
            left, right = instruction.operands
            number = constant_value(right)
            value = left
            if number is None:
                number, value = constant_value(left), right
        elif instruction.opcode is Opcode.SUBTRACT:
            value, right = instruction.operands
            number = constant_value(right)
            number = None if number is None else -number
        else:
            break
        if number is None:
            break
        total = wrap(total + number, value, signed=True)
        source = source_of(value)
    return source, total
