"""The while loops of a module, as rules about loops see them."""

from __future__ import annotations

from hloopt.analysis.calls import callees_first, reachable_from_entry
from hloopt.analysis.loops.invariance import LoopInvariance
from hloopt.analysis.loops.nesting import nested_loops
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.checks.lint.costs import runs_text
from hloopt.checks.view import View
from hloopt.ir.instruction import Instruction


def reached_loops(view: View) -> list[Instruction]:
    """The loops that the entry reaches, outer ones first."""

    def find() -> list[Instruction]:
        module = view.subject.module
        reached = reachable_from_entry(module)
        callers_first = [each for each in reversed(callees_first(module)) if each in reached]
        return [loop for loop, _ in nested_loops(callers_first)]

    return view.once("reached loops", find)


def repeated_loops(view: View) -> dict[Instruction, int]:
    """The loops that are known to make two trips or more, with the trips of all their runs."""

    def find() -> dict[Instruction, int]:
        found = {}
        for loop in reached_loops(view):
            trips = trip_count(loop)
            if trips is not None and trips > 1 and (runs := view.runs(loop).times):
                found[loop] = trips * runs
        return found

    return view.once("repeated loops", find)


def runs_again(view: View, instruction: Instruction) -> bool:
    """Whether an instruction runs twice in one run of the module, or nobody knows how often."""
    runs = view.runs(instruction)
    return runs.times > 1 or not runs.is_known


def loop_runs_text(view: View, instruction: Instruction) -> str:
    """How often an instruction of a loop runs: `, 32 runs`."""
    if view.runs(instruction).is_known:
        return runs_text(view, instruction)
    return ", in a loop whose trip count is not known"


def invariance(view: View) -> LoopInvariance:
    """The loop-invariant instructions of the module, found once for each loop."""
    return view.once("loop invariance", lambda: LoopInvariance(view.subject.module))
