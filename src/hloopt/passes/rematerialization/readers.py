"""The instructions of a schedule that read a value: the next one, and whether there are any."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from hloopt.ir import Instruction
from hloopt.passes.rematerialization.items import Item
from hloopt.passes.rematerialization.tracker import MemoryTracker
from hloopt.passes.rematerialization.values import LOOKED_THROUGH


class Readers:
    """The items that have an instruction as operand, in the order of the schedule.

    They are sorted at the first question; `add` and `remove` keep them up to date. Others that do
    not read it any more are found out when they would be the answer.
    """

    def __init__(self, tracker: MemoryTracker) -> None:
        self._tracker = tracker
        self._sorted: dict[Instruction, list[Item]] = {}

    def next(self, value: Instruction, *, but: Instruction) -> Item | None:
        """The first reader behind the current instruction, one without a place left out.

        O(log readers) but for the first time, amortized.
        """
        current = self._tracker.current
        assert current is not None
        readers = self._sorted.get(value)
        if readers is None:
            others = (user for user in dict.fromkeys(value.users) if user is not but)
            readers = self._sorted[value] = sorted(map(self._tracker.item, others))
        number = bisect_right(readers, current)
        while number < len(readers):
            if value in readers[number].instruction.operands:
                return readers[number]
            del readers[number]
        return None

    def add(self, reader: Item) -> None:
        """Take note of a new instruction that has its place."""
        for operand in dict.fromkeys(reader.instruction.operands):
            if operand in self._sorted:
                insort(self._sorted[operand], reader)

    def remove(self, reader: Item) -> None:
        """Forget an instruction before it loses its place."""
        for operand in dict.fromkeys(reader.instruction.operands):
            readers = self._sorted.get(operand, [])
            number = bisect_left(readers, reader)
            if number < len(readers) and readers[number] is reader:
                del readers[number]


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
