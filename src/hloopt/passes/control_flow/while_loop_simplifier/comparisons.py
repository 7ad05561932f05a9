"""Comparisons in a loop's body that come out the same in every trip are constants."""

from __future__ import annotations

from hloopt.analysis.loops.expressions import constant_value
from hloopt.analysis.loops.induction import MIRRORED, plus_constant
from hloopt.analysis.loops.integers import holds, wrap
from hloopt.analysis.loops.trip_count import LoopTrips
from hloopt.ir.attributes.typed import direction_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.control_flow.while_loop_simplifier.state import MayApply, is_read_by_element


def simplify_comparisons(loop: Instruction, may_apply: MayApply, trips: LoopTrips) -> int:
    """Replace comparisons of the induction variable with constants that its values all pass,
    or all fail; how many.

    Where what comes out is only handed to the next trip, which does not read it, the first trip
    does not count. O(size of the body).
    """
    variable = trips.variable
    if variable is None or variable.init is None or not trips.computed or trips.is_tried:
        return 0
    body = loop.called[0]
    found: list[tuple[Instruction, bool]] = []
    for compare in body.instructions:
        if compare.opcode is Opcode.COMPARE and (compare.users or compare.is_root):
            is_overwritten = trips.computed > 1 and _is_overwritten(loop, compare)
            first = variable.init + variable.step * is_overwritten
            last = variable.init + variable.step * (trips.computed - 1)
            verdict = _verdict(loop, compare, variable.index, (first, last))
            if verdict is not None:
                found.append((compare, verdict))
    if not (found and may_apply()):
        return 0
    for compare, verdict in found:
        payload = "true" if verdict else "false"
        compare.replace_all_uses_with(body.add(Opcode.CONSTANT, compare.shape, payload=payload))
    return len(found)


def _is_overwritten(loop: Instruction, value: Instruction) -> bool:
    """Whether a value in the body only makes elements of the state that no trip reads."""
    root = loop.called[0].root
    if list(value.users) != [root] or root.opcode is not Opcode.TUPLE:
        return False
    if value.is_root or not is_read_by_element(loop):
        return False
    return not any(
        root.operands[read.tuple_index] is value
        for computation in loop.called
        for read in computation.parameters[0].users
    )


def _verdict(
    loop: Instruction, compare: Instruction, variable: int, ends: tuple[int, int]
) -> bool | None:
    """The result of a comparison for all values of the induction variable between two.

    None where that differs or is not known.
    """
    direction = direction_of(compare)
    left, right = compare.operands
    for value, other, seen_from in (
        (left, right, direction),
        (right, left, MIRRORED.get(direction, direction)),
    ):
        source, offset = plus_constant(value)
        if source.element_of(loop) != variable:
            continue
        limit = constant_value(other)
        first, last = (end + offset for end in ends)
        if limit is None or first != wrap(first, value) or last != wrap(last, value):
            return None
        if seen_from in ("EQ", "NE") and min(first, last) <= limit <= max(first, last):
            return None
        verdict = holds(first, seen_from, limit)
        return verdict if verdict == holds(last, seen_from, limit) else None
    return None
