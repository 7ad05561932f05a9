"""The number of times each computation runs in one run of the module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hloopt.analysis.calls import callees_first
from hloopt.analysis.cost.analysis import CostAnalysis
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode

RUNNING = frozenset((Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL, Opcode.ASYNC_START))
"""Opcodes that cost what the computations they run cost, and nothing of their own."""


class Runs(NamedTuple):
    """The number of times a computation runs; not `is_known` within loops of unknown trip
    counts."""

    times: int
    is_known: bool


ONCE = Runs(1, True)


def count_runs(module: Module, costs: CostAnalysis) -> dict[Computation, Runs]:
    """Runs of the entry and of what it runs: bodies, branches, called computations.

    Costs of instructions times runs add up to `costs.module()`, for an analysis that is not
    `as_xla`: unknown loops take one trip, and of a conditional the costliest branch runs.
    Computations applied to elements, or fused, belong to their callers. O(instructions).
    """
    runs = {module.entry: ONCE}
    for computation in reversed(callees_first(module)):
        if computation not in runs:
            continue
        outer, is_known = runs[computation]
        for instruction in computation.instructions:
            if instruction.opcode in RUNNING:
                for callee, times, is_said in _called(instruction, costs):
                    before = runs.get(callee, Runs(0, True))
                    runs[callee] = Runs(
                        before.times + outer * times, before.is_known and is_known and is_said
                    )
    return runs


def runs_with_parts(module: Module, costs: CostAnalysis) -> dict[Computation, Runs]:
    """Runs of all that the entry reaches: what is fused, or applied to elements, runs as often as
    its callers do. O(instructions)."""
    runs = count_runs(module, costs)
    for computation in reversed(callees_first(module)):
        if computation not in runs:
            callers = [runs.get(caller.parent, Runs(0, True)) for caller in computation.callers]
            runs[computation] = Runs(
                sum(caller.times for caller in callers),
                all(caller.is_known for caller in callers),
            )
    return runs


def count_calls(module: Module, costs: CostAnalysis) -> dict[Computation, dict[Instruction, int]]:
    """By computation what runs it, and how often in one run of that; callers come first.

    Of what a caller runs twice, as two branches, both count. O(instructions).
    """
    order = list(reversed(callees_first(module)))
    calls: dict[Computation, dict[Instruction, int]] = {computation: {} for computation in order}
    for computation in order:
        for instruction in computation.instructions:
            if instruction.opcode in RUNNING:
                for callee, times, _ in _called(instruction, costs):
                    calls[callee][instruction] = calls[callee].get(instruction, 0) + times
    return calls


def _called(
    instruction: Instruction, costs: CostAnalysis
) -> Iterator[tuple[Computation, int, bool]]:
    """Yield the computations that one run of an instruction runs, and how many times each.

    The last of each says whether the number is known.
    """
    if instruction.opcode is Opcode.WHILE:
        body, condition = instruction.called
        trips = trip_count(instruction)
        yield body, 1 if trips is None else trips, trips is not None
        yield condition, 1 if trips is None else trips + 1, trips is not None
    elif instruction.opcode is Opcode.CONDITIONAL:
        likely = costs.likely_branch(instruction)
        for branch in dict.fromkeys(instruction.called):
            yield branch, int(branch is likely), True
    else:
        yield instruction.called[0], 1, True
