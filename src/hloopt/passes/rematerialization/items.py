"""The scheduled instructions of a computation and the buffers that they define."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hloopt.ir import Instruction

_GAP = 1 << 40
"""Between the positions of neighbours at first: what is inserted takes the middle."""
_ROOM = 1 << 16
"""Between neighbours that are numbered anew."""


@dataclass(slots=True, eq=False)
class Buffer:
    """A value that an instruction defines: an array or the pointer table of a tuple."""

    definer: Item
    size: int
    """Bytes that count: 0 for parameters, results of the computation and host memory."""
    is_live_out: bool
    element: int | None
    """The tuple element that the buffer is of its definer's result; None for the whole of it."""
    is_nested: bool
    """Whether it is inside of a tuple that is an element of a tuple."""
    users: dict[Item, None] = field(default_factory=dict)
    """The instructions that read it, also through aliases."""
    indirect_users: dict[Item, None] = field(default_factory=dict)
    """The users through an alias that is neither a bitcast nor a get-tuple-element, and the loops
    that take it for their state."""
    unfinished: int = 0
    """The number of users that have not ended."""
    is_alive: bool = False
    """Whether its definer is placed and a user has not ended."""
    is_counted: bool = False
    """Whether its size is part of the memory in use."""


@dataclass(slots=True, eq=False)
class Item:
    """An instruction at its place in the schedule."""

    instruction: Instruction
    position: int = 0
    """A number that grows along the schedule; it may change, the order does not."""
    before: Item | None = None
    after: Item | None = None
    is_placed: bool = False
    """Whether the walk along the schedule has begun the instruction, which is still there."""
    is_finished: bool = False
    """Whether it has ended it, too."""
    is_barred: bool = False
    """Whether it must not be rematerialized."""
    operands: tuple[Instruction, ...] = ()
    """Those of the instruction when what it reads was found out last."""
    is_candidate: bool = False
    """Whether its own buffers are large enough to begin a block."""
    defined: list[Buffer] = field(default_factory=list)
    held: list[Buffer] = field(default_factory=list)
    """The buffer in each slot of the result."""
    used: dict[Buffer, None] = field(default_factory=dict)

    def __lt__(self, other: Item) -> bool:
        return self.position < other.position


class Sequence:
    """The items of a computation in the order of its schedule: a linked list.

    Inserting is O(1), apart from new positions for the neighbours after some items at one place:
    O(log items), amortized.
    """

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        self.first: Item | None = None
        self._last: Item | None = None
        self._items: dict[Instruction, Item] = {}
        for instruction in instructions:
            item = Item(instruction)
            self._items[instruction] = item
            item.position = len(self._items) * _GAP
            self._link(item, self._last)

    def __iter__(self) -> Iterator[Item]:
        """The items in order; those that are inserted behind the current one follow."""
        item = self.first
        while item is not None:
            yield item
            item = item.after

    def item(self, instruction: Instruction) -> Item:
        return self._items[instruction]

    def instructions(self) -> list[Instruction]:
        return [item.instruction for item in self]

    def insert_after(self, instruction: Instruction, place: Item) -> Item:
        """Let a new instruction come directly behind `place`."""
        item = self._items[instruction] = Item(instruction)
        self._link(item, place)
        end = place.position + 2 * _GAP if item.after is None else item.after.position
        item.position = (place.position + end) // 2
        if item.position == place.position:
            self._spread(item)
        return item

    def insert_before(self, instruction: Instruction, place: Item) -> Item:
        """Let a new instruction come directly before `place`, which is not the first."""
        assert place.before is not None, "a parameter or a constant comes first"
        return self.insert_after(instruction, place.before)

    def remove(self, item: Item) -> None:
        before, after = item.before, item.after
        if before is None:
            self.first = after
        else:
            before.after = after
        if after is None:
            self._last = before
        else:
            after.before = before
        del self._items[item.instruction]

    def _link(self, item: Item, place: Item | None) -> None:
        item.before = place
        if place is None:
            self.first = item
        else:
            item.after, place.after = place.after, item
            if item.after is not None:
                item.after.before = item
        if item.after is None:
            self._last = item

    @staticmethod
    def _spread(item: Item) -> None:
        """Number an item anew with as few neighbours as have room together."""
        first, last, count = item, item, 1
        while True:
            for _ in range(count):
                if first.before is not None:
                    first, count = first.before, count + 1
                if last.after is not None:
                    last, count = last.after, count + 1
            all_room = (count + 1) * _GAP
            start = last.position - all_room if first.before is None else first.before.position
            end = start + all_room if last.after is None else last.after.position
            step = (end - start) // (count + 1)
            if step >= _ROOM:
                break
        current: Item | None = first
        for number in range(1, count + 1):
            assert current is not None
            current.position = start + number * step
            current = current.after
