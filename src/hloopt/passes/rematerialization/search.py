"""The search for the best block to rematerialize at the current instruction."""

from __future__ import annotations

from hloopt.passes.rematerialization.blocks import Blocks, Parts
from hloopt.passes.rematerialization.items import Item
from hloopt.passes.rematerialization.ranking import Ranking
from hloopt.passes.rematerialization.readers import is_dead
from hloopt.passes.rematerialization.tracker import MemoryTracker
from hloopt.passes.rematerialization.ways import Way, Ways


class BlockSearch:
    """Finds the way of least cost, the first in the schedule among equals.

    Ways wait in order of their costs, and are looked at again where something changed: O(log
    instructions) per search, amortized, and for longer blocks O(longest squared) for each
    instruction that changed.
    """

    def __init__(self, tracker: MemoryTracker, ways: Ways) -> None:
        self._tracker = tracker
        self._ways = ways
        self._parts = Parts(ways)
        self._candidates: dict[Item, None] = {}
        self._singles = Ranking(tracker)
        self._blocks: dict[tuple[int, int], Blocks] = {}
        """By their shortest and longest length: those that were asked for."""

    def restart(self) -> None:
        """Forget all, as the tracker goes back to the beginning."""
        self._parts = Parts(self._ways)
        self._candidates, self._blocks = {}, {}
        self._singles = Ranking(self._tracker)

    def pass_by(self, item: Item) -> None:
        """Let an instruction that has ended be a candidate, if it may be one."""
        if item.is_candidate and self._ways.is_open(item) and not is_dead(item, self._tracker):
            self._candidates[item] = None

    def forget(self, item: Item) -> None:
        """Let an instruction be no candidate any more: it is dead or barred."""
        self._candidates.pop(item, None)
        self._singles.put(item, ())

    def best(self, shortest: int, longest: int) -> Way | None:
        """The best way for a block of so many instructions: of one, or of more than one."""
        self._take_changes()
        return self._singles.best() if longest == 1 else self._of(shortest, longest).best()

    def effort(self, shortest: int, longest: int) -> int:
        """The number of costs that `best` stands for."""
        if longest == 1:
            return len(self._candidates) * self._ways.trials
        return self._of(shortest, longest).effort

    def _of(self, shortest: int, longest: int) -> Blocks:
        found = self._blocks.get((shortest, longest))
        if found is None:
            found = Blocks(self._tracker, self._ways, self._parts, shortest, longest)
            self._blocks[shortest, longest] = found
        return found

    def _take_changes(self) -> None:
        tracker = self._tracker
        changed, tracker.changed = tracker.changed, {}
        around, tracker.changed_around = tracker.changed_around, {}
        for item in changed:
            is_open = item in self._candidates and self._ways.is_open(item)
            way = self._ways.of_single(item) if is_open else None
            self._singles.put(item, () if way is None else (way,))
        if self._blocks:
            around.update(changed)
            self._parts.forget(around)
            for blocks in self._blocks.values():
                blocks.note(around)
