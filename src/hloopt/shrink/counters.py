"""Counted loops, and what is computed from their counters.

Where the counter is only the index of layers that a loop visits one by one, from the first to the
last or from the last to the first, layers and trips can be fewer together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hloopt.analysis.loops.expressions import constant_value
from hloopt.analysis.loops.induction import comparison_of
from hloopt.analysis.loops.sources import only_caller
from hloopt.ir.attributes.typed import direction_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.shrink.factors import Factor, equate

_FEWEST_TRIPS = 3
"""Loops of fewer trips are as small as they get."""


class Counter(NamedTuple):
    """A scalar that is `offset` plus (`step` 1) or minus (-1) the number of trips done."""

    step: int
    offset: int
    trips: Factor

    def indexes(self, size: int) -> bool:
        """Whether it takes the value of each position in a dimension of this size once."""
        first = 0 if self.step == 1 else size - 1
        return self.trips.size == size and self.offset == first


def joins(a: Counter, b: Counter | None) -> bool:
    """Whether two values are the same; loops of equally many trips then shrink together."""
    if b is None or (a.step, a.offset, a.trips.size) != (b.step, b.offset, b.trips.size):
        return False
    equate([a.trips], [b.trips], "")
    return True


class CountedLoop(NamedTuple):
    """A while loop that goes on as long as an element of its state is less than a constant."""

    element: int
    """The number of the element that is the counter."""
    trips: Factor
    compare: Instruction
    """Of the counter and the constant, which is the second operand of the condition's root."""


def counted_loop(loop: Instruction) -> CountedLoop | None:
    """The parts of a loop if it may be counted; that its counter goes up by 1 is left to check."""
    compared = comparison_of(loop)
    if compared is None or compared.direction != "LT":
        return None
    if compared.limit is None or compared.limit < _FEWEST_TRIPS:
        return None
    body, condition = loop.called
    root, compare = condition.root, compared.instruction
    if root is not compare and (
        root.opcode is not Opcode.FUSION or compare.operands != compare.parent.parameters
    ):
        return None
    counter = root.operands[0]
    if counter.opcode is not Opcode.GET_TUPLE_ELEMENT or body.root.opcode is not Opcode.TUPLE:
        return None
    if counter.operands != condition.parameters:
        return None
    if not all(only_caller(computation) for computation in (body, condition, compare.parent)):
        return None
    return CountedLoop(compared.element, Factor(compared.limit), compare)


def computed_counter(
    instruction: Instruction, operands: Sequence[Counter | None]
) -> Counter | None:
    """The counter that an instruction makes of counters: the same, or one with another offset."""
    opcode = instruction.opcode
    if opcode is Opcode.COPY:
        return operands[0]
    if opcode is Opcode.SELECT:
        return operands[2] if is_never_chosen(instruction, operands[2]) else None
    if opcode not in (Opcode.ADD, Opcode.SUBTRACT):
        return None
    left, right = instruction.operands
    sign = 1 if opcode is Opcode.ADD else -1
    counter, number = operands[0], constant_value(right)
    if counter is not None and number is not None:
        return counter._replace(offset=counter.offset + sign * number)
    counter, number = operands[1], constant_value(left)
    if counter is not None and number is not None:
        return counter._replace(step=sign * counter.step, offset=number + sign * counter.offset)
    return None


def is_never(condition: Instruction, counter: Counter | None) -> bool:
    """Whether a condition is that an index is negative, which JAX asks of every index."""
    return (
        counter is not None
        and counter.indexes(counter.trips.size)
        and condition.opcode is Opcode.COMPARE
        and direction_of(condition) == "LT"
        and constant_value(condition.operands[1]) == 0
    )


def is_never_chosen(select: Instruction, counter: Counter | None) -> bool:
    """Whether a select gives its last operand, a counter, as that is not negative."""
    condition, _, otherwise = select.operands
    return is_never(condition, counter) and condition.operands[0] is otherwise


_FIRST_OFFSET = {Opcode.DYNAMIC_SLICE: 1, Opcode.DYNAMIC_UPDATE_SLICE: 2}


def is_index(instruction: Instruction, number: int, counter: Counter | None) -> bool:
    """Whether a counter, which is operand `number`, picks one layer of a dynamic slice."""
    first = _FIRST_OFFSET.get(instruction.opcode)
    if first is None or number < first or counter is None:
        return False
    whole = instruction.operands[0].shape
    part = instruction.shape if first == 1 else instruction.operands[1].shape
    dimension = number - first
    return part.dimensions[dimension] == 1 and counter.indexes(whole.dimensions[dimension])
