"""The longest chain of instructions that depend on each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from hloopt.ir import Computation, Instruction
from hloopt.ir.ordering import dependencies
from hloopt.simulation.execution import ComputationRun, Simulation


class Step(NamedTuple):
    """An instruction on the path, and what it adds to it."""

    instruction: Instruction
    time: float


@dataclass(slots=True)
class CriticalPaths:
    """By computation its critical path: no order makes one run of it shorter.

    What would remain if streams were without limits and nothing had to run one after another but
    what depends on each other. Loops take their trips times the path of their body.
    """

    lengths: dict[Computation, float] = field(default_factory=dict)
    steps: dict[Computation, list[Step]] = field(default_factory=dict)
    """In the order of the program, those that take time."""

    @classmethod
    def of(cls, simulation: Simulation) -> CriticalPaths:
        """O(edges of what runs)."""
        paths = cls()
        for computation, run in simulation.runs.items():
            paths._add(computation, run, enters=simulation.loops != "cost")
        return paths

    def _add(self, computation: Computation, run: ComputationRun, *, enters: bool) -> None:
        ending_at = {operation.done: operation for operation in run.operations}
        finish: dict[Instruction, float] = {}
        last: dict[Instruction, Instruction | None] = {}
        for instruction, cost in zip(run.order, run.work, strict=True):
            longest, before = 0.0, None
            for source in dependencies(instruction):
                time = finish[source]
                if time > longest:
                    longest, before = time, source
            calls = run.calls.get(instruction)
            if calls is not None and enters:
                cost = sum(self.lengths[callee] * times for callee, times in calls)
            finish[instruction] = longest + cost
            operation = ending_at.get(instruction)
            if operation is not None:  # a done is through when its operation is, as in XLA
                start = operation.start
                begun = longest if start is instruction else finish[start]
                if begun + operation.latency >= finish[instruction]:
                    finish[instruction] = begun + operation.latency
                    before = before if start is instruction else start
            last[instruction] = before
        ending = max(finish, key=finish.__getitem__, default=None)
        self.lengths[computation] = 0.0 if ending is None else finish[ending]
        self.steps[computation] = steps = []
        while ending is not None:
            before = last[ending]
            time = finish[ending] - (0.0 if before is None else finish[before])
            if time > 0:
                steps.append(Step(ending, time))
            ending = before
        steps.reverse()
