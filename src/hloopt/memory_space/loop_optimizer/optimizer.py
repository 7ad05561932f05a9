"""The plan for one loop: what is in alternate memory in every iteration, and from when on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hloopt.analysis.dataflow import Use
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.heap.loop_heap import LoopAllocation, LoopHeap
from hloopt.memory_space.loop_optimizer.finding import UnrolledLoop
from hloopt.memory_space.loop_optimizer.prefetches import LoopPrefetch, PrefetchPlacer
from hloopt.memory_space.loop_optimizer.timing import IterationTimes, RepeatedCopy
from hloopt.memory_space.loop_optimizer.values import LoopValue, ValueKind, loop_values
from hloopt.memory_space.options.parts import LoopOptimizerOptions
from hloopt.memory_space.program import Program

_PLANNED = (ValueKind.TEMPORARY, ValueKind.PINNED, ValueKind.PREFETCH)


@dataclass(slots=True, eq=False)
class LoopPlacement:
    """Where a value is in every iteration: in default memory without an allocation."""

    value: LoopValue
    allocation: LoopAllocation | None
    prefetch: LoopPrefetch | None = None
    uses: list[tuple[int, Use]] = field(default_factory=list)
    """The uses that find it there, by index; those in the next iteration stand for this one's."""


@dataclass(slots=True)
class LoopOptimization:
    """The result for one iteration, which all others repeat."""

    heap: LoopHeap
    placements: list[LoopPlacement]
    seconds: float
    """The estimated time of an iteration."""

    @property
    def prefetches(self) -> list[LoopPrefetch]:
        return [each.prefetch for each in self.placements if each.prefetch is not None]


def optimize_loop(
    program: Program,
    costs: MemorySpaceCosts,
    loop: UnrolledLoop,
    options: LoopOptimizerOptions,
    *,
    max_size: int,
    alignment: int = 1,
    is_allowed: Callable[[Buffer], bool] = lambda buffer: True,
) -> LoopOptimization:
    """Plan the second iteration of a loop for `max_size` bytes of alternate memory.

    What saves most per byte is placed first, temporaries and what is pinned; then prefetches get
    the room and the bandwidth of default memory that is left. O(values · chunks).
    """
    start = loop.start + loop.size
    values = loop_values(program, costs, start, start + loop.size, is_allowed)
    heap = LoopHeap(max_size, loop.size, alignment)
    times = IterationTimes(program, costs, start, loop.size)
    placements = []
    for value in values:
        if value.kind not in _PLANNED:
            continue
        placement = LoopPlacement(value, _stay(heap, value, loop.size))
        placement.uses = value.uses + value.next_uses * (value.kind is ValueKind.TEMPORARY)
        placements.append(placement)
        if placement.allocation is not None:
            times.add(value)
    candidates = [value for value in values if value.kind is ValueKind.PREFETCH]
    placer = PrefetchPlacer(loop.size, heap, costs, options, _idle(times, candidates))
    placer.place_all(candidates)
    by_value = {prefetch.value: prefetch for prefetch in placer.placed}
    for placement in placements:
        prefetch = by_value.get(placement.value)
        if prefetch is not None:
            placement.prefetch, placement.allocation = prefetch, prefetch.allocation
            times.add(placement.value)
    copies = [RepeatedCopy(p.start_after, p.value.first_use, p.seconds) for p in placer.placed]
    return LoopOptimization(heap, placements, times.simulate(copies))


def _stay(heap: LoopHeap, value: LoopValue, size: int) -> LoopAllocation | None:
    """The chunk of a value that is in alternate memory without a copy."""
    if value.kind is ValueKind.TEMPORARY:
        last = max(index for index, _ in (*value.positions, *value.uses))
        if value.next_uses:
            last = size + value.next_uses[-1][0]
        return heap.allocate_same(value.positions[0][0], last, value.size)
    if value.kind is ValueKind.PINNED and value.savings > 0:
        return heap.allocate_same(0, size - 1, value.size)
    return None


def _idle(times: IterationTimes, candidates: list[LoopValue]) -> list[float]:
    """The idle seconds by index if all prefetches are done in time."""
    assumed = IterationTimes(times.program, times.costs, times.start, times.size)
    assumed.operands = [list(parts) for parts in times.operands]
    assumed.results = times.results
    for value in candidates:
        assumed.add(value)
    return [assumed.idle(index) for index in range(times.size)]
