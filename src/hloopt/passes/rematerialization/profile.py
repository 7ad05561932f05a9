"""The memory of a computation at each instruction, kept up to date while the schedule is edited."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isqrt

from hloopt.ir import Instruction
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.passes.rematerialization.items import Buffer, Item
from hloopt.passes.rematerialization.tracker import MemoryTracker

_SHORTEST = 16


@dataclass(slots=True, eq=False)
class _Block:
    """Neighbouring items."""

    items: list[Item]
    total: int = 0
    """Bytes in use behind the block, less those before it."""
    highest: int = 0
    """The most bytes at an item of the block, less those before it."""
    place: Item | None = None
    """The first item with so many."""
    is_stale: bool = True


class MemoryProfile:
    """Bytes at each instruction of a schedule: the sizes of the buffers that live there.

    A buffer lives from its definition to its last user. The items stand in blocks, of which only
    those are added up again in which a buffer begins or ends anew: O(sqrt(items)) per edit and
    per question, and O(users) for each buffer that an edit touches.
    """

    def __init__(
        self, tracker: MemoryTracker, callees_memory: Callable[[Instruction], int]
    ) -> None:
        self._tracker = tracker
        self._callees_memory = callees_memory
        items = list(tracker.sequence)
        self._longest = max(_SHORTEST, isqrt(len(items)))
        self._blocks: list[_Block] = []
        self._block_of: dict[Item, _Block] = {}
        self._begin: dict[Item, int] = {}
        """Bytes that an instruction adds when it begins."""
        self._end: dict[Item, int] = {}
        """Bytes that it takes away when it ends."""
        self._spans: dict[Buffer, tuple[Item, Item]] = {}
        self.callers: dict[Item, None] = {}
        """The instructions with callees that count."""
        for start in range(0, len(items), self._longest):
            self._add_block(len(self._blocks), items[start : start + self._longest])
        for item in items:
            self._place(item.defined)
        tracker.edits.clear()

    def update(self) -> None:
        """Take over what was edited since."""
        edits = self._tracker.edits
        for item in edits.removed:
            self.callers.pop(item, None)
            block = self._block_of.pop(item, None)
            if block is not None:
                block.items.remove(item)
                block.is_stale = True
        for item in edits.added:
            if item not in self._block_of and item not in edits.removed:
                self._insert(item)
        self._place(edits.touched)
        edits.clear()

    def recount_callers(self) -> None:
        """Ask again what callees need. O(callers)."""
        for item in self.callers:
            self._block_of[item].is_stale = True

    def peak(self) -> tuple[int, Item | None]:
        """The peak in bytes, callees included, and the first instruction that reaches it."""
        peak, place = 0, self._tracker.sequence.first
        before = 0
        for block in self._blocks:
            self._refresh(block)
            if block.place is not None and before + block.highest > peak:
                peak, place = before + block.highest, block.place
            before += block.total
        return peak, place

    def memory(self, item: Item) -> int:
        """Bytes at an instruction, without its callees."""
        own = self._block_of[item]
        memory = 0
        for block in self._blocks:
            if block is own:
                break
            self._refresh(block)
            memory += block.total
        for other in own.items:
            memory += self._begin.get(other, 0)
            if other is item:
                break
            memory -= self._end.get(other, 0)
        return memory

    # -- blocks -------------------------------------------------------------------------------

    def _add_block(self, number: int, items: list[Item]) -> None:
        block = _Block(items)
        self._blocks.insert(number, block)
        self._register(items, block)

    def _register(self, items: list[Item], block: _Block) -> None:
        self._block_of.update(dict.fromkeys(items, block))
        calls = (i for i in items if i.instruction.called)
        self.callers.update(
            (i, None) for i in calls if i.instruction.opcode in CONTROL_FLOW_CALLERS
        )

    def _insert(self, item: Item) -> None:
        """Put a new item, with the new ones before it, behind the one that has a block."""
        run = [item]
        place = item.before
        while place is not None and place not in self._block_of:
            run.append(place)
            place = place.before
        assert place is not None, "nothing comes before the parameters and constants"
        block = self._block_of[place]
        at = block.items.index(place) + 1
        block.items[at:at] = reversed(run)
        self._register(run, block)
        block.is_stale = True
        if len(block.items) > 2 * self._longest:
            behind = block.items[self._longest :]
            del block.items[self._longest :]
            self._add_block(self._blocks.index(block) + 1, behind)

    def _refresh(self, block: _Block) -> None:
        if not block.is_stale:
            return
        memory, block.highest, block.place = 0, 0, None
        for item in block.items:
            memory += self._begin.get(item, 0)
            most = memory + self._callees_memory(item.instruction)
            if block.place is None or most > block.highest:
                block.highest, block.place = most, item
            memory -= self._end.get(item, 0)
        block.total = memory
        block.is_stale = False

    # -- buffers ------------------------------------------------------------------------------

    def _place(self, buffers: Iterable[Buffer]) -> None:
        """Let buffers live from where they are defined now to where they are last read."""
        for buffer in buffers:
            if span := self._spans.pop(buffer, None):
                self._count(span, -buffer.size)
            if buffer.size and buffer.definer in self._block_of:
                last = max(buffer.users, default=buffer.definer)
                span = self._spans[buffer] = buffer.definer, last
                self._count(span, buffer.size)

    def _count(self, span: tuple[Item, Item], size: int) -> None:
        for item, amounts in zip(span, (self._begin, self._end), strict=True):
            amounts[item] = amounts.get(item, 0) + size
            if block := self._block_of.get(item):
                block.is_stale = True
