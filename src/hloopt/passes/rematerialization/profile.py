"""The memory of a computation at each instruction, kept up to date while the schedule is edited."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hloopt.ir import Instruction
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.passes.rematerialization.items import Buffer, Item
from hloopt.passes.rematerialization.memory_tree import MemoryTree
from hloopt.passes.rematerialization.tracker import MemoryTracker


class MemoryProfile:
    """Bytes at each instruction of a schedule: the sizes of the buffers that live there.

    A buffer lives from its definition to its last user: O(log items) per edit and per question,
    and O(users) for each buffer that an edit touches.
    """

    def __init__(
        self, tracker: MemoryTracker, callees_memory: Callable[[Instruction], int]
    ) -> None:
        self._tracker = tracker
        self._tree = MemoryTree(tracker.sequence, callees_memory)
        self._spans: dict[Buffer, tuple[Item, Item]] = {}
        self.callers: dict[Item, None] = {}
        """The instructions with callees that count."""
        for item in tracker.sequence:
            self._register(item)
            self._place(item.defined)
        tracker.edits.clear()

    def update(self) -> None:
        """Take over what was edited since."""
        edits = self._tracker.edits
        for item in edits.removed:
            self.callers.pop(item, None)
            if item in self._tree:
                self._tree.remove(item)
        for item in edits.added:
            if item not in self._tree and item not in edits.removed:
                self._insert(item)
        self._place(edits.touched)
        edits.clear()

    def recount_callers(self) -> None:
        """Ask again what callees need. O(callers)."""
        for item in self.callers:
            self._tree.recount(item)

    def peak(self) -> tuple[int, Item | None]:
        """The peak in bytes, callees included, and the first instruction that reaches it."""
        peak, place = self._tree.highest()
        return (peak, place) if peak > 0 else (0, self._tracker.sequence.first)

    def memory(self, item: Item) -> int:
        """Bytes at an instruction, without its callees."""
        return self._tree.memory(item)

    def _register(self, item: Item) -> None:
        instruction = item.instruction
        if instruction.called and instruction.opcode in CONTROL_FLOW_CALLERS:
            self.callers[item] = None

    def _insert(self, item: Item) -> None:
        """Put a new item, with the new ones before it, behind the one that is known."""
        run = [item]
        place = item.before
        while place is not None and place not in self._tree:
            run.append(place)
            place = place.before
        for new in reversed(run):
            assert place is not None, "nothing comes before the parameters and constants"
            self._tree.insert(new, place)
            self._register(new)
            place = new

    def _place(self, buffers: Iterable[Buffer]) -> None:
        """Let buffers live from where they are defined now to where they are last read."""
        for buffer in buffers:
            if span := self._spans.pop(buffer, None):
                self._count(span, -buffer.size)
            if buffer.size and buffer.definer in self._tree:
                last = max(buffer.users, default=buffer.definer)
                span = self._spans[buffer] = buffer.definer, last
                self._count(span, buffer.size)

    def _count(self, span: tuple[Item, Item], size: int) -> None:
        first, last = span
        self._tree.count(first, begin=size)
        self._tree.count(last, end=size)
