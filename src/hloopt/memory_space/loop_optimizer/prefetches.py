"""Prefetches that every iteration of a loop repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.heap.loop_heap import LoopAllocation, LoopHeap
from hloopt.memory_space.loop_optimizer.values import LoopValue
from hloopt.memory_space.options.parts import LoopOptimizerOptions

_ROUNDING = 1e-9
"""The part of a copy that may be missing because sums of seconds are rounded."""


@dataclass(slots=True, eq=False)
class LoopPrefetch:
    """A prefetch of a value, for its uses in one iteration."""

    value: LoopValue
    seconds: float
    allocation: LoopAllocation

    @property
    def begin(self) -> int:
        """The first index at which its chunk is taken; if negative, in the iteration before."""
        return self.allocation.begin

    @property
    def start_after(self) -> int:
        return self.begin - 1


@dataclass(slots=True)
class PrefetchPlacer:
    """Finds the times and chunks of prefetches, given the bandwidth that a loop leaves idle.

    Prefetches keep the order of their uses: none starts before another one and ends after it. A
    value costs O(steps + prefetches), and as often as one overtakes another O(chunks).
    """

    size: int
    """The steps of an iteration."""
    heap: LoopHeap
    costs: MemorySpaceCosts
    options: LoopOptimizerOptions
    idle: list[float]
    """By index the seconds in which default memory has nothing to do, but for prefetches."""
    placed: list[LoopPrefetch] = field(default_factory=list)

    def place_all(self, values: Sequence[LoopValue]) -> None:
        """Place values from the one with the latest first use to that with the earliest."""
        for value in sorted(values, key=lambda value: -value.first_use):
            self._place(value)

    def _place(self, value: LoopValue) -> None:
        """Reserve a chunk from the first time on that will do; nothing where none does."""
        seconds = self.costs.copy_seconds(value.size)
        for begin in self._begins(value, seconds):
            allocation = self._reserve(value, begin)
            if allocation is not None:
                self.placed.append(LoopPrefetch(value, seconds, allocation))
                self._use_up(range(value.first_use - 1, begin - 1, -1), seconds)
                return

    def _begins(self, value: LoopValue, seconds: float) -> list[int]:
        """The indices at which the chunk could begin, the best first.

        The whole copy is hidden, or enough of it, or it starts when the one before is done with.
        """
        earliest = value.last_use - self.size
        later = [other.begin for other in self.placed if other.value.first_use > value.first_use]
        latest = min([value.first_use, *later])
        collected = 0.0
        hidden = enough = None
        for begin in range(value.first_use, earliest - 1, -1):
            collected += self.idle[begin % self.size] if begin < value.first_use else 0
            if begin > latest:
                continue
            if enough is None and self._is_paid(collected, seconds * self._ratio):
                enough = begin
            if self._is_paid(collected, seconds):
                hidden = begin
                break
        found = [begin for begin in (hidden, enough) if begin is not None]
        if self.options.allow_unsatisfied_fully_pipelined_prefetch and earliest <= latest:
            found.append(earliest)
        return list(dict.fromkeys(found))

    @property
    def _ratio(self) -> float:
        return self.options.desired_copy_ratio

    def _is_paid(self, collected: float, seconds: float) -> bool:
        return collected >= seconds * (1 - _ROUNDING)

    def _use_up(self, indices: range, seconds: float) -> None:
        """Take the seconds of a copy from what is idle, the last steps first."""
        for index in indices:
            taken = min(seconds, self.idle[index % self.size])
            self.idle[index % self.size] -= taken
            seconds -= taken

    def _reserve(self, value: LoopValue, begin: int) -> LoopAllocation | None:
        """A chunk from an index on; prefetches for the iteration before start no later than it.

        None, and nothing is changed, where there is no room.
        """
        overtaken = [other for other in self.placed if other.begin - self.size > begin]
        old = [other.allocation for other in overtaken]
        for allocation in old:
            self.heap.remove(allocation)
        wanted = [(value, begin), *((other.value, begin + self.size) for other in overtaken)]
        made: list[LoopAllocation] = []
        for each, first in wanted:
            found = self.heap.allocate(first, each.last_use, each.size)
            if found is None:
                break
            made.append(found)
        else:
            for other, allocation in zip(overtaken, made[1:], strict=True):
                other.allocation = allocation
            return made[0]
        for allocation in made:
            self.heap.remove(allocation)
        for allocation in old:
            self.heap.put_back(allocation)
        return None
