"""Ways to save memory in the order of their costs, while they come and go."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from hloopt.passes.rematerialization.items import Buffer, Item
from hloopt.passes.rematerialization.tracker import MemoryTracker
from hloopt.passes.rematerialization.ways import Way


class Ranking:
    """Ways by the first instruction of their blocks, of which the best is asked for.

    O(log ways) for each that comes or goes, amortized, and for each that the current instruction
    keeps from being taken.
    """

    def __init__(self, tracker: MemoryTracker) -> None:
        self._tracker = tracker
        self._heap: list[tuple[int, Item, int, int, Way]] = []
        self._ways: dict[Item, Sequence[Way]] = {}
        self._numbers: dict[Item, int] = {}
        """Of each first instruction that of its entries which count."""
        self._number = 0
        self._aside: list[tuple[int, Item, int, int, Way]] = []
        """Entries with an instruction that the current one reads."""
        self._used: dict[Buffer, None] | None = None
        """The buffers that it read at the last question."""

    def put(self, start: Item, ways: Sequence[Way]) -> None:
        """Let these be the ways for blocks that begin with `start`."""
        if ways == self._ways.get(start):
            return
        if not ways:
            self._ways.pop(start, None)
            self._numbers.pop(start, None)
            return
        self._number += 1
        self._ways[start] = ways
        self._numbers[start] = self._number
        for way in ways:
            heappush(self._heap, (way.cost, start, len(way.block), self._number, way))

    def best(self) -> Way | None:
        """The way of least cost, of equals the first in the schedule, of these the shortest.

        Blocks of which the current instruction reads something are left out.
        """
        tracker, heap = self._tracker, self._heap
        used = None if tracker.current is None else tracker.current.used
        if used is not self._used:
            self._used = used
            for entry in self._aside:
                heappush(heap, entry)
            self._aside = []
        while heap:
            _, start, _, number, way = heap[0]
            if self._numbers.get(start) != number:
                heappop(heap)
            elif any(map(tracker.is_used_now, way.block)):
                self._aside.append(heappop(heap))
            else:
                return way
        return None
