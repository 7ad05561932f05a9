"""The search for the best block to rematerialize at the current instruction."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from hloopt.passes.rematerialization.items import Item
from hloopt.passes.rematerialization.tracker import MemoryTracker
from hloopt.passes.rematerialization.values import LOOKED_THROUGH
from hloopt.passes.rematerialization.ways import Way, Ways


class Found(NamedTuple):
    """The result of a search."""

    way: Way | None
    effort: int
    """The number of costs that it stands for."""


class BlockSearch:
    """Finds the way of least cost, the first in the schedule among equals.

    Ways for single instructions wait in a heap and are computed again where something changed:
    O(log instructions) per search, amortized. Longer blocks are all tried: O(operands of all
    instructions, times the block size).
    """

    def __init__(self, tracker: MemoryTracker, ways: Ways) -> None:
        self._tracker = tracker
        self._ways = ways
        self._heap: list[tuple[int, Item, int, Way]] = []
        self._best: dict[Item, Way] = {}
        self._entries = 0
        self._candidates: dict[Item, None] = {}

    def restart(self) -> None:
        """Forget all, as the tracker goes back to the beginning."""
        self._heap, self._best, self._candidates = [], {}, {}

    def pass_by(self, item: Item) -> None:
        """Let an instruction that has ended be a candidate, if it may be one."""
        if item.is_candidate and self._ways.is_open(item) and not is_dead(item, self._tracker):
            self._candidates[item] = None

    def forget(self, item: Item) -> None:
        """Let an instruction be no candidate any more: it is dead or barred."""
        self._candidates.pop(item, None)
        self._best.pop(item, None)

    def best(self, shortest: int, longest: int) -> Found:
        """The best way for a block of so many instructions."""
        if longest == 1:
            return Found(self._best_single(), len(self._candidates) * self._ways.trials)
        return self._best_block(shortest, longest)

    # -- single instructions --------------------------------------------------------------------

    def _best_single(self) -> Way | None:
        self._take_changes()
        aside = []
        best = None
        while self._heap:
            entry = self._heap[0]
            _, item, _, way = entry
            if self._best.get(item) is not way:
                heappop(self._heap)
            elif self._tracker.is_used_now(item):
                aside.append(heappop(self._heap))
            else:
                best = way
                break
        for entry in aside:
            heappush(self._heap, entry)
        return best

    def _take_changes(self) -> None:
        changed = self._tracker.changed
        self._tracker.changed = {}
        for item in changed:
            self._best.pop(item, None)
            if item not in self._candidates:
                continue
            way = self._ways.of_single(item) if self._ways.is_open(item) else None
            if way is not None:
                self._best[item] = way
                self._entries += 1
                heappush(self._heap, (way.cost, item, self._entries, way))

    # -- blocks -------------------------------------------------------------------------------

    def _best_block(self, shortest: int, longest: int) -> Found:
        self._take_changes()
        best: Way | None = None
        effort = 0
        for start in self._placed():
            if not start.is_candidate or is_dead(start, self._tracker):
                continue
            block = self._first_block(start, shortest)
            if block is None:
                break
            if not all(map(self._ways.is_open, block)):
                continue
            for way in self._grow(block, longest):
                effort += 1
                if way is not None and (best is None or way.cost < best.cost):
                    best = way
        return Found(best, effort)

    def _placed(self) -> Iterator[Item]:
        for item in self._tracker.sequence:
            if not item.is_placed or item is self._tracker.current:
                return
            yield item

    def _first_block(self, start: Item, length: int) -> list[Item] | None:
        """So many placed instructions from `start` on; None where there are fewer."""
        block: list[Item] = []
        item: Item | None = start
        while len(block) < length:
            if item is None or not item.is_placed or item is self._tracker.current:
                return None
            block.append(item)
            item = item.after
        return block

    def _grow(self, block: list[Item], longest: int) -> Iterator[Way | None]:
        """The ways for a block, and for what it becomes with the instructions behind it."""
        if len(block) == 1:
            way = self._best.get(block[0])
            for _ in range(self._ways.trials - 1):
                yield None  # tried with the others
            yield None if way is None or self._tracker.is_used_now(block[0]) else way
            self._extend(block)
        while 1 < len(block) <= longest:
            is_used = any(map(self._tracker.is_used_now, block))
            yield None if is_used else self._ways.recompute(block)
            if not self._extend(block):
                return

    def _extend(self, block: list[Item]) -> bool:
        """Add the instruction behind a block; False where it cannot be part of it."""
        item = block[-1].after
        if (
            item is None
            or not item.is_placed
            or item is self._tracker.current
            or not self._ways.is_open(item)
        ):
            return False
        block.append(item)
        return True


def is_dead(item: Item, tracker: MemoryTracker) -> bool:
    """Whether nothing but bitcasts and get-tuple-elements without users reads an instruction.

    O(such readers).
    """
    if item.instruction.is_root:
        return False
    waiting = list(item.instruction.users)
    while waiting:
        user = waiting.pop()
        if user.opcode not in LOOKED_THROUGH or user.is_root:
            return False
        waiting += user.users
    return True
