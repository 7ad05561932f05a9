"""The value of a counter after a loop, without running the loop."""

from __future__ import annotations

from hloopt.analysis.loops.induction import (
    comparison_of,
    induction_variable,
    initial_element,
)
from hloopt.analysis.loops.integers import wrap
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.collectives.collective_pipeliner.copies import integer


def projected(value: Instruction) -> Instruction:
    """A value that does not wait for a loop if `value` is the counter after that loop.

    The loop counts up to a constant limit by a constant step; where it starts need not be known.
    Any other value is itself. O(what makes the counter).
    """
    if value.opcode is not Opcode.GET_TUPLE_ELEMENT or value.operands[0].opcode is not Opcode.WHILE:
        return value
    loop, index = value.operands[0], value.tuple_index
    comparison = comparison_of(loop)
    variable = induction_variable(loop, index)
    start = initial_element(loop, index)
    if comparison is None or variable is None or start is None or comparison.limit is None:
        return value
    is_counter = comparison.element == index and comparison.offset == 0
    limit, step = comparison.limit, variable.step
    if not is_counter or comparison.direction != "LT" or step <= 0:
        return value
    if any(number != wrap(number, value) for number in (limit + step - 1, 4 * step)):
        return value  # the counter, or what is computed here, may overflow
    return _rounded_up(start, limit, step)


def _rounded_up(start: Instruction, limit: int, step: int) -> Instruction:
    """The first of `start`, `start + step` and so on that is at least `limit`."""
    body, shape = start.parent, start.shape
    bound = integer(start, limit)
    least = body.add(Opcode.MAXIMUM, shape, [start, bound])
    if step == 1:
        return least
    size = integer(start, step)
    past_start = body.add(Opcode.REMAINDER, shape, [start, size])
    past_limit = body.add(Opcode.REMAINDER, shape, [least, size])
    behind = body.add(Opcode.SUBTRACT, shape, [past_start, past_limit])
    # More than -2 · step: made positive before the remainder is taken.
    twice = integer(start, 2 * step)
    positive = body.add(Opcode.ADD, shape, [behind, twice])
    missing = body.add(Opcode.REMAINDER, shape, [positive, size])
    return body.add(Opcode.ADD, shape, [least, missing])
