"""The number of trips that while loops make."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.loops.annotation import known_trip_count
from hloopt.analysis.loops.expressions import Expression
from hloopt.analysis.loops.induction import (
    Comparison,
    InductionVariable,
    comparison_of,
    induction_variable,
    initial_element,
)
from hloopt.analysis.loops.integers import holds, wrap
from hloopt.analysis.loops.sources import Source, source_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

MOST_TRIPS_TRIED = 128
"""Loops of no known form are run for this many trips at most, as XLA does."""


@dataclass(frozen=True, slots=True)
class LoopTrips:
    """The trip count of one loop, and its source. Made by `loop_trips`."""

    comparison: Comparison | None
    """The comparison in the condition, where it is of an element of the state with another
    value."""
    variable: InductionVariable | None
    """The element that the condition reads, where every trip adds a constant to it."""
    element: int | None
    """The only element, of those that trips change, that the condition reads."""
    computed: int | None
    """Trips, found from body and condition; None where they do not tell."""
    is_tried: bool
    """Whether `computed` was found by running condition and counter, trip by trip."""
    last: int | None
    """The value of `variable` after the last trip, where its steps told the trips."""
    stated: int | None
    """`known_trip_count` of the backend_config."""
    reason: str
    """The reason why nothing was computed, for a user; else empty."""

    @property
    def count(self) -> int | None:
        """The best that is known: what body and condition tell, else what is stated."""
        return self.stated if self.computed is None else self.computed

    @property
    def disagrees(self) -> bool:
        """Whether the backend_config states another number than body and condition tell."""
        return None not in (self.stated, self.computed) and self.stated != self.computed


def trip_count(loop: Instruction) -> int | None:
    """The number of trips a while loop makes; None where that is not known before it runs.

    From body and condition where these tell, else `known_trip_count` of the backend_config.
    O(instructions that make the counter), and up to 128 times that for unusual counters.
    """
    return loop_trips(loop).count


def loop_trips(loop: Instruction) -> LoopTrips:
    """The trip count of a while loop, and its source. Cost: as `trip_count`."""
    stated = known_trip_count(loop)
    comparison = comparison_of(loop)
    variable = None if comparison is None else induction_variable(loop, comparison.element)
    trips: int | str = "its condition does not compare a counter with a constant"
    if comparison is not None and variable is not None:
        trips = _trips_of(loop, comparison, variable)
        if isinstance(trips, int) and variable.init is not None:
            counter = loop.called[0].root.operands[variable.index]
            last = wrap(variable.init + trips * variable.step, counter)
            return LoopTrips(comparison, variable, variable.index, trips, False, last, stated, "")
    element, tried = _try(loop)
    if isinstance(tried, int):
        return LoopTrips(comparison, variable, element, tried, True, None, stated, "")
    reason = trips if isinstance(trips, str) and variable is not None else tried
    return LoopTrips(comparison, variable, element, None, False, None, stated, reason)


def _trips_of(loop: Instruction, comparison: Comparison, variable: InductionVariable) -> int | str:
    """The trips of a counter with a constant step, or why they are not known."""
    limit, step, direction = comparison.limit, variable.step, comparison.direction
    if variable.init is None:
        return f"the initial value of its counter, element {variable.index}, is not constant"
    if limit is None:
        return "the limit it compares its counter with is not constant"
    counter = loop.called[0].root.operands[variable.index]
    first = wrap(variable.init + comparison.offset, counter)
    if not holds(first, direction, limit):
        return 0
    if step == 0:
        return "it never ends: nothing changes its counter"
    trips = _first_failure(first, step, direction, limit)
    last = None if trips is None else first + trips * step
    if trips is None or last is None or last != wrap(last, counter):
        return "its counter does not reach the limit without overflow"
    return trips


def _first_failure(first: int, step: int, direction: str, limit: int) -> int | None:
    """The number of steps, without bounds on integers, until the comparison no longer holds."""
    match direction:
        case "EQ":
            return 1
        case "NE":
            trips, rest = divmod(limit - first, step)
            return trips if rest == 0 and trips >= 0 else None
        case "LT" | "LE" if step > 0:
            return -((first - limit - (direction == "LE")) // step)
        case "GT" | "GE" if step < 0:
            return -((limit - first - (direction == "GE")) // -step)
        case _:
            return None


def _try(loop: Instruction) -> tuple[int | None, int | str]:
    """Run condition and counter alone: the element, and the trips or why there are none."""
    body, condition = loop.called
    read = _elements_read(loop, condition.root)
    if read is None and not loop.shape.is_tuple:
        return None, "its state is not a tuple"
    if read is None:
        return None, "its condition is computed in many steps, or not from the state alone"
    if len(read) > 1:
        return None, "its condition depends on several elements of the state that change"
    if not read:
        going_on = Expression.of(condition.root)
        value = None if going_on is None else going_on.evaluate()
        if value is None:
            return None, "its condition cannot be evaluated"
        return None, "it never ends: its condition is constant" if value else 0
    [index] = read
    if body.root.opcode is not Opcode.TUPLE:
        return index, "the root of its body is not a tuple"
    first = initial_element(loop, index)
    start = None if first is None else Expression.of(first)
    if start is None:
        return index, f"the initial value of its counter, element {index}, is not constant"
    going_on = Expression.of(condition.root, [Source(condition.parameters[0], (index,))])
    following = Expression.of(body.root.operands[index], [Source(body.parameters[0], (index,))])
    if going_on is None or following is None:
        return index, f"its counter, element {index}, depends on more than itself and constants"
    value = start.evaluate()
    for trips in range(MOST_TRIPS_TRIED + 1):
        goes_on = None if value is None else going_on.evaluate(value)
        if goes_on is None:
            return index, f"its counter, element {index}, cannot be evaluated"
        if not goes_on:
            return index, trips
        value = following.evaluate(value)
    return index, f"it makes more than {MOST_TRIPS_TRIED} trips, its counter has no constant step"


_MOST_READ = 64


def _elements_read(loop: Instruction, value: Instruction) -> list[int] | None:
    """The elements of a loop's state that a value is computed from, those that stay as they are
    left aside. None where it is computed from much."""
    found: dict[int, None] = {}
    seen = {source_of(value)}
    stack = list(seen)
    while stack:
        source = stack.pop()
        element = source.element_of(loop)
        if element is not None:
            found[element] = None
        elif source.path or source.instruction.opcode is Opcode.PARAMETER:
            return None
        for operand in source.instruction.operands:
            before = source_of(operand)
            if before not in seen:
                seen.add(before)
                stack.append(before)
        if len(seen) > _MOST_READ:
            return None
    return list(found)
