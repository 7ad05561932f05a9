"""Loops out of which nothing is hoisted."""

from __future__ import annotations

from hloopt.analysis.loops.expressions import Expression
from hloopt.analysis.loops.sources import Source
from hloopt.analysis.loops.trip_count import loop_trips
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_DISABLED = "_xla_disable_loop_instr_hoisting"
SHARDINGS = frozenset(("SPMDFullToShardShape", "SPMDShardShapeToFull", "SPMDShardToFullShape"))
TRANSFERS = frozenset(("MoveToHost", "MoveToDevice"))


def why_not_hoisted(loop: Instruction, targets: frozenset[str] = frozenset()) -> str | None:
    """The reason why a loop keeps its body as it is; `targets` are more of custom calls in it."""
    if not loop.shape.is_tuple:
        return "its state is no tuple"
    if frontend_attribute(loop, _DISABLED) is not None:
        return f"it has the frontend attribute {_DISABLED}"
    if _makes_one_trip(loop):
        return "it makes at most one trip"
    bound = SHARDINGS | targets
    for instruction in loop.called[0].instructions:
        is_call = instruction.opcode is Opcode.CUSTOM_CALL
        if instruction.opcode is Opcode.DOMAIN or (
            is_call and custom_call_target(instruction) in bound
        ):
            return f"%{instruction.name} in its body is bound to it"
    return None


def _makes_one_trip(loop: Instruction) -> bool:
    """Whether a loop is known to make at most one trip.

    It does where its trips are counted, and where the body gives the one element that the condition
    reads a constant that ends the loop.
    """
    trips = loop_trips(loop)
    if trips.count is not None:
        return trips.count <= 1
    body, condition = loop.called
    if trips.element is None or body.root.opcode is not Opcode.TUPLE:
        return False
    index = trips.element
    following = Expression.of(body.root.operands[index])
    goes_on = Expression.of(condition.root, [Source(condition.parameters[0], (index,))])
    value = None if following is None else following.evaluate()
    answer = None if goes_on is None or value is None else goes_on.evaluate(value)
    return answer is not None and not answer
