"""Rules about collectives in loops."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.async_operations import SYNC_COLLECTIVES, wrapped
from hloopt.analysis.calls import loops_with_body
from hloopt.analysis.inventory.collectives import Collective
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.analysis.side_effects import SideEffects
from hloopt.checks.doubts import not_partitioned
from hloopt.checks.lint.costs import collectives, exposed_seconds, runners
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.diagnostics import counted, with_article
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.loop_state import is_handed_on
from hloopt.ir.opcode import ASYNC, COLLECTIVES, Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.tuples import is_parameter_element


@rule("HLL102", "loop-invariant-collective", not_partitioned)
def loop_invariant_collective(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Collectives in bodies of loops whose operands are the same in every trip.

    O(instructions) of the bodies that have collectives.
    """
    for each in collectives(view):
        if not each.wire:
            continue
        for runner in runners(each):
            loops = loops_with_body(runner.parent)
            if loops and _repeats_work(view, runner, loops) and _is_invariant(view, runner):
                yield _repeats(view, each, runner, loops)


def _repeats(
    view: View, collective: Collective, runner: Instruction, loops: list[Instruction]
) -> Finding:
    runs, needed = view.runs(runner).times, _runs_of_loops(view, loops)
    exposed = exposed_seconds(view, runner)
    how_often = (
        "runs in each, once would do"
        if _has_unknown_trips(loops)
        else f"runs {counted(runs, 'time')}, {needed} would do"
    )
    return Finding(
        f"{with_article(collective.kind.value)} has the same operands in every trip of "
        f"%{loops[0].name}: %{runner.name} {how_often}",
        runner,
        Impact(exposed * (runs - needed) / max(runs, 1), collective.wire * (runs - needed)),
        related=tuple(loops),
    )


def _repeats_work(view: View, runner: Instruction, loops: list[Instruction]) -> bool:
    """Whether an instruction in the body of loops runs more often than they do."""
    is_more = view.runs(runner).times > _runs_of_loops(view, loops)
    return is_more or _has_unknown_trips(loops)


def _has_unknown_trips(loops: list[Instruction]) -> bool:
    return any(trip_count(loop) is None for loop in loops)


def _runs_of_loops(view: View, loops: list[Instruction]) -> int:
    return sum(view.runs(loop).times for loop in loops)


def _is_invariant(view: View, instruction: Instruction) -> bool:
    """Whether an instruction in the body of a loop has the same operands in every trip."""
    body = instruction.parent
    effects = view.once("side effects", lambda: SideEffects(view.subject.module))
    known = view.once(("loop invariants", body), lambda: _invariants(body, effects))
    return all(operand in known for operand in instruction.operands)


def _invariants(body: Computation, effects: SideEffects) -> set[Instruction]:
    """The instructions of a loop's body that give the same value in every trip.

    Elements of the state that are handed on, and what is computed from these and constants alone.
    O(instructions + operands).
    """
    (loop, *_) = loops_with_body(body)
    found: set[Instruction] = set()
    for instruction in stable_order(body):
        if is_parameter_element(instruction):
            if is_handed_on(loop, instruction.tuple_index):
                found.add(instruction)
        elif found.issuperset(instruction.operands) and _is_function(instruction, effects):
            found.add(instruction)
    return found


def _is_function(instruction: Instruction, effects: SideEffects) -> bool:
    """Whether equal operands give an equal value, now and in the next trip."""
    if instruction.opcode is Opcode.PARAMETER:
        return False
    is_collective = instruction.opcode in COLLECTIVES or (
        instruction.opcode in ASYNC and wrapped(instruction).opcode in SYNC_COLLECTIVES
    )
    return is_collective or not effects.of(instruction)
