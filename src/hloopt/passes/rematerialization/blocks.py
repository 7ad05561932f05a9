"""The ways to recompute neighbouring instructions together, kept while the schedule changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hloopt.passes.rematerialization.items import Item
from hloopt.passes.rematerialization.ranking import Ranking
from hloopt.passes.rematerialization.readers import is_dead
from hloopt.passes.rematerialization.tracker import MemoryTracker
from hloopt.passes.rematerialization.ways import Part, Way, Ways


class Parts:
    """The shares of instructions in blocks, each asked for again only where something changed."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._found: dict[Item, Part | None] = {}

    def of(self, item: Item) -> Part | None:
        if item not in self._found:
            self._found[item] = self._ways.part(item)
        return self._found[item]

    def forget(self, items: Iterable[Item]) -> None:
        for item in items:
            self._found.pop(item, None)


class Blocks:
    """The blocks of `shortest` to `longest` instructions before the current one."""

    def __init__(
        self, tracker: MemoryTracker, ways: Ways, parts: Parts, shortest: int, longest: int
    ) -> None:
        self._tracker = tracker
        self._ways = ways
        self._parts = parts
        self._shortest = shortest
        self._longest = longest
        self._ranking = Ranking(tracker)
        self._changed: dict[Item, None] = dict.fromkeys(tracker.sequence)
        self._efforts: dict[Item, int] = {}
        self.effort = 0
        """The number of blocks that may be tried, as of the last question."""

    def note(self, items: Iterable[Item]) -> None:
        """Take note that something changed about these instructions, or right behind them."""
        self._changed.update(dict.fromkeys(items))

    def best(self) -> Way | None:
        """The best way. O(longest squared) for each instruction that changed."""
        starts = {start: None for item in self._changed for start in self._starts(item)}
        self._changed.clear()
        for start in starts:
            self._look_at(start)
        return self._ranking.best()

    def _starts(self, item: Item) -> Iterator[Item]:
        """The instructions with which blocks begin that an instruction may be in."""
        start: Item | None = item
        for _ in range(self._longest):
            if start is None or not (start is item or self._ways.is_open(start)):
                return
            yield start
            start = start.before

    def _look_at(self, start: Item) -> None:
        """Count the blocks that begin with an instruction, and find their ways."""
        block = self._longest_block(start)
        effort = max(0, len(block) - self._shortest + 1)
        self.effort += effort - self._efforts.pop(start, 0)
        ways: list[Way] = []
        if effort:
            self._efforts[start] = effort
            ways = self._ways.of_blocks(block, self._parts.of, self._shortest)
        self._ranking.put(start, ways)

    def _longest_block(self, start: Item) -> list[Item]:
        """As many instructions from `start` on as may be recomputed together."""
        block: list[Item] = []
        if not start.is_candidate:
            return block
        current, is_open = self._tracker.current, self._ways.is_open
        item: Item | None = start
        while (
            len(block) < self._longest
            and item is not None
            and item.is_placed
            and item is not current
            and is_open(item)
        ):
            block.append(item)
            item = item.after
        if len(block) >= self._shortest and is_dead(start, self._tracker):
            return []
        return block
