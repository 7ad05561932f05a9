"""The memory in use while the instructions of a schedule begin and end, one after another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heappop, heappush

from hloopt.analysis.dataflow.slots import slots_of
from hloopt.ir import Computation, Instruction, Opcode, Shape
from hloopt.passes.rematerialization.items import Buffer, Item, Sequence
from hloopt.passes.rematerialization.sizes import Sizes
from hloopt.passes.rematerialization.values import LOOKED_THROUGH, UnreadOperands, passed_on


@dataclass(slots=True)
class Edits:
    """Items and buffers that edits of a schedule concerned, since somebody took note of them."""

    added: dict[Item, None] = field(default_factory=dict)
    removed: dict[Item, None] = field(default_factory=dict)
    touched: dict[Buffer, None] = field(default_factory=dict)
    """Buffers that are new, or have other users."""

    def clear(self) -> None:
        self.added.clear()
        self.removed.clear()
        self.touched.clear()


class MemoryTracker:
    """The buffers of one scheduled computation, and the bytes of those that are in memory.

    `begin` adds what an instruction defines, `end` takes away what nobody reads any more. After an
    edit, `add` and `update` count as if the new instructions had been there all along. Linear in
    the operands and slots of the instructions concerned.
    """

    def __init__(
        self,
        computation: Computation,
        sizes: Sizes,
        *,
        host_memory_space: int | None = None,
        unread: UnreadOperands | None = None,
    ) -> None:
        self.sequence = Sequence(computation.instructions)
        self.memory = 0
        """Bytes in use."""
        self.current: Item | None = None
        """The instruction that has begun and not ended."""
        self.changed: dict[Item, None] = {}
        """Items whose ways to save memory have to be looked at again."""
        self.changed_around: dict[Item, None] = {}
        """Items that stay as they are, while their neighbours, readers or control edges changed:
        only the blocks that they are in have to be looked at again."""
        self.edits = Edits()
        self._sizes = sizes
        self._host_memory_space = host_memory_space
        self._unread = unread or UnreadOperands()
        computation.link_users()
        for item in self.sequence:
            self._define(item)
        for buffer in self.sequence.item(computation.root).held:
            buffer.is_live_out = True
            buffer.size = 0

    # -- the walk -----------------------------------------------------------------------------

    def restart(self) -> None:
        """Go back to the beginning of the schedule. O(items and buffers)."""
        self.memory, self.current = 0, None
        self.changed, self.changed_around = {}, {}
        for item in self.sequence:
            item.is_placed = item.is_finished = False
            for buffer in item.defined:
                buffer.unfinished = len(buffer.users)
                buffer.is_alive = buffer.is_counted = False

    def begin(self, item: Item) -> None:
        self.current = item
        item.is_placed = True
        for buffer in item.defined:
            self._refresh(buffer)
        for buffer in item.used:
            self.changed[buffer.definer] = None
        self._note_predecessors(item)

    def end(self) -> None:
        item = self.current
        assert item is not None
        self.current = None
        item.is_finished = True
        for buffer in item.used:
            buffer.unfinished -= 1
            self._refresh(buffer)
        for buffer in item.defined:
            self._refresh(buffer)
        self.changed[item] = None

    def back(self) -> Item | None:
        """Take back the beginning of the current instruction; the one before it, which has not
        ended any more."""
        item = self.current
        assert item is not None
        item.is_placed = False
        self.current = item.before
        for buffer in item.defined:
            self._refresh(buffer)
        for buffer in item.used:
            self.changed[buffer.definer] = None
        self._note_predecessors(item)
        if self.current is not None:
            self._reopen(self.current)
        return self.current

    def _reopen(self, item: Item) -> None:
        """Take back the end of the instruction that is current again."""
        item.is_finished = False
        for buffer in item.used:
            buffer.unfinished += 1
            self._refresh(buffer)
        for buffer in item.defined:
            self._refresh(buffer)
        self.changed[item] = None

    def _note_predecessors(self, item: Item) -> None:
        """Take note that an instruction was placed, or is not any more."""
        for predecessor in item.instruction.control_predecessors:
            self.changed[self.item(predecessor)] = None
        for operand in item.operands:
            self.changed_around[self.item(operand)] = None

    def _refresh(self, buffer: Buffer) -> None:
        definer = buffer.definer
        is_alive = definer.is_placed and buffer.unfinished > 0
        if is_alive is not buffer.is_alive:
            buffer.is_alive = is_alive
            self.changed[definer] = None
            if buffer.size:
                self.changed.update(buffer.users)
        is_counted = is_alive or (definer is self.current)
        if is_counted is not buffer.is_counted:
            buffer.is_counted = is_counted
            self.memory += buffer.size if is_counted else -buffer.size

    # -- facts --------------------------------------------------------------------------------

    def item(self, instruction: Instruction) -> Item:
        return self.sequence.item(instruction)

    def is_used_now(self, item: Item) -> bool:
        """Whether the current instruction reads a buffer of `item`, or is it."""
        current = self.current
        if current is None:
            return False
        return item is current or any(buffer in current.used for buffer in item.defined)

    def unplaced_users(self, item: Item) -> list[Item]:
        """The users of an item's own buffers that have not begun, in the order of the schedule."""
        found = {user for buffer in item.defined for user in buffer.users if not user.is_placed}
        return sorted(found)

    # -- edits --------------------------------------------------------------------------------

    def add(self, instruction: Instruction, place: Item, *, before: bool = False) -> Item:
        """Give a new instruction its place, directly behind `place` or before it.

        What comes before the current instruction counts as over.
        """
        if before:
            item = self.sequence.insert_before(instruction, place)
        else:
            item = self.sequence.insert_after(instruction, place)
        current = self.current
        is_over = current is not None and item.position < current.position
        self.edits.added[item] = None
        item.is_placed = item.is_finished = is_over
        return item

    def update(self, items: Iterable[Item]) -> None:
        """Take note that instructions are new or have other operands.

        What they pass on is followed to its users. O(operands and slots of all these).
        """
        waiting = sorted(items)
        queued = set(waiting)
        while waiting:
            item = heappop(waiting)
            queued.discard(item)
            held = item.held
            for buffer in item.used:
                self.changed_around[buffer.definer] = None
            self._note_readers_of(item.operands)
            self._define(item)
            self._note_readers_of(item.operands)
            if held and held != item.held:
                for user in map(self.item, item.instruction.users):
                    if user not in queued:
                        queued.add(user)
                        heappush(waiting, user)

    def remove(self, item: Item) -> None:
        """Forget an instruction that nobody reads."""
        self._note_readers_of(item.operands)
        for neighbour in (item.before, *map(self.item, item.instruction.control_predecessors)):
            if neighbour is not None:
                self.changed_around[neighbour] = None
        self.changed_around[item] = None
        item.is_placed = False
        for buffer in item.used:
            self._drop_user(buffer, item)
        for buffer in item.defined:
            if buffer.is_counted:
                buffer.is_counted = False
                self.memory -= buffer.size
        self.edits.removed[item] = None
        self.edits.touched.update(dict.fromkeys(item.defined))
        self.changed.pop(item, None)
        self.sequence.remove(item)

    def _note_readers_of(self, values: Iterable[Instruction]) -> None:
        """Take note that values have other readers, and so what they are aliases of."""
        for value in values:
            self.changed_around[self.item(value)] = None
            while value.opcode in LOOKED_THROUGH:
                value = value.operands[0]
                self.changed_around[self.item(value)] = None

    def bar(self, item: Item) -> None:
        """Let an instruction never be rematerialized."""
        item.is_barred = True
        self.changed[item] = None

    # -- what instructions define, hold and read ------------------------------------------------

    def _define(self, item: Item) -> None:
        """Find out what an instruction holds and reads; its own buffers are made once."""
        instruction = item.instruction
        item.operands = tuple(instruction.operands)
        slots = slots_of(instruction.shape)
        held: list[Buffer | None] = [None] * len(slots.parts)
        for slot, source, start, width, arrays_only in passed_on(instruction):
            passed = self.item(source).held[start : start + width]
            for number, value in enumerate(passed, slot):
                if not (arrays_only and slots.parts[number].is_tuple):
                    held[number] = value
        own = iter(item.defined)
        is_new = not item.held
        for slot, buffer in enumerate(held):
            if buffer is None:
                held[slot] = self._new_buffer(item, slot) if is_new else next(own)
        item.held = [buffer for buffer in held if buffer is not None]
        self._read(item)
        for buffer in item.defined if is_new else ():
            self._refresh(buffer)

    def _new_buffer(self, item: Item, slot: int) -> Buffer:
        instruction = item.instruction
        part = slots_of(instruction.shape).parts[slot]
        size = self._sizes.slots(instruction.shape)[slot]
        if instruction.opcode is Opcode.PARAMETER or (
            part.is_array and part.layout.memory_space == self._host_memory_space
        ):
            size = 0
        element = _elements(instruction.shape).get(slot)
        buffer = Buffer(
            definer=item,
            size=size,
            is_live_out=False,
            element=element,
            is_nested=slot > 0 and element is None,
        )
        item.defined.append(buffer)
        self.edits.touched[buffer] = None
        return buffer

    def _read(self, item: Item) -> None:
        """Make `item` a user of what it reads now."""
        used, indirect = self._reads(item)
        for buffer in item.used:
            if buffer not in used:
                self._drop_user(buffer, item)
            else:
                buffer.indirect_users.pop(item, None)
        for buffer in used:
            if item not in buffer.users:
                buffer.users[item] = None
                buffer.unfinished += not item.is_finished
                self.edits.touched[buffer] = None
                self._refresh(buffer)
                self.changed[buffer.definer] = None
        for buffer in indirect:
            buffer.indirect_users[item] = None
        item.used = used
        self.changed[item] = None

    def _reads(self, item: Item) -> tuple[dict[Buffer, None], list[Buffer]]:
        instruction = item.instruction
        opcode = instruction.opcode
        is_element = opcode is Opcode.GET_TUPLE_ELEMENT
        unread = self._unread.of(instruction) if opcode is Opcode.FUSION else ()
        used: dict[Buffer, None] = {}
        indirect: list[Buffer] = []
        for number, operand in enumerate(instruction.operands):
            if number in unread:
                continue
            source = self.item(operand)
            read = source.held[:1] if is_element else source.held
            used.update(dict.fromkeys(read))
            if operand.opcode not in LOOKED_THROUGH:
                indirect += [buffer for buffer in read if buffer.definer is not source]
        if opcode is Opcode.WHILE:
            indirect += item.held
        return used, indirect

    def _drop_user(self, buffer: Buffer, item: Item) -> None:
        del buffer.users[item]
        buffer.indirect_users.pop(item, None)
        buffer.unfinished -= not item.is_finished
        self.edits.touched[buffer] = None
        self._refresh(buffer)
        self.changed[buffer.definer] = None


@lru_cache(maxsize=1 << 12)
def _elements(shape: Shape) -> dict[int, int]:
    """The elements of a tuple by their slots. O(elements), once per shape."""
    return {slot: number for number, slot in enumerate(slots_of(shape).element_starts[:-1])}
