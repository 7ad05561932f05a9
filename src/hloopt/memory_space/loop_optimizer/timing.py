"""The time of an iteration, by what it has in alternate memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hloopt.analysis.dataflow import slots_of
from hloopt.analysis.dataflow.slots import Index
from hloopt.memory_space.costs.costs import MemorySpaceCosts, OperandPart
from hloopt.memory_space.loop_optimizer.values import LoopValue
from hloopt.memory_space.program import Program

_ITERATIONS = 3
"""The iterations that are run: the last one finds all its copies started."""


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedCopy:
    """A copy in every iteration, by indices: a negative one is in the iteration before."""

    start_after: int
    done_before: int
    seconds: float


_Running = dict[tuple[RepeatedCopy, int], float]
"""The seconds left of copies for the iterations of these numbers, in order of their starts."""


@dataclass(slots=True)
class IterationTimes:
    """The seconds of the steps of an iteration, as more and more is in alternate memory."""

    program: Program
    costs: MemorySpaceCosts
    start: int
    size: int
    operands: list[list[OperandPart]] = field(init=False)
    results: list[list[Index]] = field(init=False)

    def __post_init__(self) -> None:
        self.operands = [[] for _ in range(self.size)]
        self.results = [[] for _ in range(self.size)]

    def add(self, value: LoopValue) -> None:
        """Let a value be in alternate memory in all iterations. O(its positions and uses)."""
        for index, (instruction, slot) in value.positions:
            self.results[index].append(slots_of(instruction.shape).indices[slot])
        for index, use in value.uses + value.next_uses * bool(value.positions):
            self.operands[index].append((use.operand, self.program.place_of(use).index))

    def elapsed(self, index: int) -> float:
        """The seconds of a step."""
        step = self.program.schedule.steps[self.start + index]
        return self.costs.elapsed_seconds(step, self.operands[index], self.results[index])

    def idle(self, index: int) -> float:
        """The seconds of them in which default memory has nothing to do for the step."""
        step = self.program.schedule.steps[self.start + index]
        busy = self.costs.default_seconds(step, self.operands[index], self.results[index])
        return max(self.elapsed(index) - busy, 0)

    def simulate(self, copies: Iterable[RepeatedCopy]) -> float:
        """The seconds of an iteration with these copies, in the long run.

        Copies share what is idle, first come, first served; a step waits for the rest of those it
        reads. Of the first iterations some copies are taken to be done. O(steps + copies · log).
        """
        ordered = sorted(copies, key=lambda copy: (copy.start_after, copy.done_before))
        starts: dict[int, list[RepeatedCopy]] = {}
        needed: dict[int, list[RepeatedCopy]] = {}
        for copy in ordered:
            starts.setdefault(copy.start_after % self.size, []).append(copy)
            needed.setdefault(copy.done_before, []).append(copy)
        for begun in starts.values():  # those for the iteration at hand before those for the next
            begun.sort(key=lambda copy: copy.done_before - copy.start_after)
        running: _Running = {}
        seconds = 0.0
        for iteration in range(_ITERATIONS):
            seconds = 0.0
            for index in range(self.size):
                for copy in needed.get(index, ()):
                    seconds += _wait(running, (copy, iteration))
                seconds += self.elapsed(index)
                _proceed(running, self.idle(index))
                for copy in starts.get(index, ()):
                    ahead = -(copy.start_after // self.size)
                    running[copy, iteration + ahead] = copy.seconds
        return seconds


def _wait(running: _Running, wanted: tuple[RepeatedCopy, int]) -> float:
    """Do a copy, and all before it; the seconds that takes."""
    seconds = 0.0
    while wanted in running:
        seconds += running.pop(next(iter(running)))
    return seconds


def _proceed(running: _Running, seconds: float) -> None:
    """Let copies run for some time, one after the other."""
    while running and seconds > 0:
        first = next(iter(running))
        if running[first] > seconds:
            running[first] -= seconds
            return
        seconds -= running.pop(first)
