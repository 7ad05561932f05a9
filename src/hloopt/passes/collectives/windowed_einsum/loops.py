"""Loops of windowed einsums: a dot taken apart by shards, which permutes hand around."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hloopt.analysis.loops.trip_count import loop_trips
from hloopt.diagnostics import counted
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import computation_post_order
from hloopt.passes.collectives.collective_pipeliner.effects import has_effect

_PREFIX = "windowed_dot_general_body_"
_EXCHANGES = frozenset((Opcode.COLLECTIVE_PERMUTE,))


class WindowedLoop(NamedTuple):
    """A loop whose name says that XLA's partitioner made it of one dot."""

    loop: Instruction
    gathers: bool
    """Whether it hands shards of an operand around; else partial results, which it adds up."""


class Counter(NamedTuple):
    """The counter of a loop, whose trips are all known."""

    element: int
    """The element of the state that it is."""
    init: int
    step: int
    trips: int


def windowed_loops(module: Module) -> list[WindowedLoop]:
    """The loops of a module whose bodies have the name and the two dots of a windowed einsum.

    O(instructions).
    """
    found: list[WindowedLoop] = []
    for computation in computation_post_order(module):
        if computation.is_fusion:
            continue
        for loop in computation.instructions:
            if loop.opcode is not Opcode.WHILE:
                continue
            body = loop.called[0]
            kind = body.name.removeprefix(_PREFIX)[:2] if body.name.startswith(_PREFIX) else ""
            if kind in ("ag", "rs") and len(dots_of(body.instructions)) >= 2:
                found.append(WindowedLoop(loop, kind == "ag"))
    return found


def dots_of(instructions: Iterable[Instruction]) -> list[Instruction]:
    """The dots among some instructions."""
    return [each for each in instructions if each.opcode is Opcode.DOT]


def counter_of(loop: Instruction) -> Counter | str:
    """The counter of a loop, or the reason why its trips are not all known."""
    trips = loop_trips(loop)
    if trips.computed is None:
        return f"its trip count is not proved: {trips.reason}"
    variable = trips.variable
    if variable is None or variable.init is None or trips.last is None or not variable.step:
        return "no element of its state counts its trips"
    if not trips.computed:
        return "it makes no trip"
    return Counter(variable.index, variable.init, variable.step, trips.computed)


def why_not(loop: Instruction, max_instructions: int) -> str | None:
    """The reason why a loop must stay as it is, or None. O(instructions of body and condition)."""
    body, condition = loop.called
    counter = counter_of(loop)
    if isinstance(counter, str):
        return counter
    if len(loop.shape.elements) < 3:
        return "its state has no result beside two operands"
    for instruction in (*body.instructions, *condition.instructions):
        if has_effect(instruction, but=_EXCHANGES):
            return f"%{instruction.name} in it has a side effect, which trips keep in order"
    size = counter.trips * len(body)
    if size > max_instructions:
        return (
            f"its body would have {counted(size, 'instruction')}, and max_instructions is "
            f"{max_instructions:,}"
        )
    return None


def reads_of(state: Instruction, element: int) -> list[Instruction]:
    """The get-tuple-elements that read an element of a loop's state, or of its result."""
    return [
        user
        for user in state.users
        if user.opcode is Opcode.GET_TUPLE_ELEMENT and user.tuple_index == element
    ]
