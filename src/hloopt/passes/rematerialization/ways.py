"""Ways to save memory at the current instruction, and their costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from hloopt.ir import Opcode
from hloopt.ir.opcode import STARTS
from hloopt.passes.rematerialization.items import Buffer, Item
from hloopt.passes.rematerialization.state import State
from hloopt.passes.rematerialization.tracker import MemoryTracker

PARTS_OF_ASYNC = STARTS | {
    *(Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE, Opcode.COPY_DONE, Opcode.ALL_GATHER_DONE),
    *(Opcode.ALL_REDUCE_DONE, Opcode.COLLECTIVE_PERMUTE_DONE),
}
"""Opcodes of which there is one for each operation: they can move, but not run twice."""


class Strategy(StrEnum):
    """The fate of a value between two of its uses."""

    COMPRESS = "compress"
    HOST_OFFLOAD = "host-offload"
    RECOMPUTE = "recompute"


class Way(NamedTuple):
    """A way to save memory from the current instruction on."""

    cost: int
    """The limit divided by the bytes saved; 0 for a mere move."""
    saved: int
    """Bytes."""
    strategy: Strategy
    block: tuple[Item, ...]


class Part(NamedTuple):
    """The share of an instruction in what it saves to recompute a block."""

    alive: int
    """Bytes of its own buffers that are alive."""
    ended: tuple[Buffer, ...]
    """Buffers that it reads and that are not alive: kept longer, unless the block makes them."""
    must_stay: bool
    has_placed_user: bool


class Ways:
    """Finds ways for blocks of a computation.

    Whether the current instruction reads a block is left to `MemoryTracker.is_used_now`: that
    apart, a way stays what it is until the tracker says that one of its items changed.
    """

    def __init__(self, state: State, tracker: MemoryTracker, limit: int, peak: int) -> None:
        self._state = state
        self._options = state.options
        self._tracker = tracker
        self._limit = limit
        self.peak = peak
        """Bytes: compressing must not need more than that in between."""

    @property
    def trials(self) -> int:
        """The number of strategies that are tried for a single instruction."""
        options = self._options
        return options.compress + options.host_offload + options.recompute

    def is_open(self, item: Item) -> bool:
        """Whether an item may be part of a block at all."""
        return not item.is_barred and self._state.may_run_again(item.instruction)

    def of_single(self, item: Item) -> Way | None:
        """The best way for an instruction alone, or None. O(its users and operands)."""
        best: Way | None = None
        for find, is_wanted in (
            (self._compress, self._options.compress),
            (self._host_offload, self._options.host_offload),
            (self._recompute, True),
        ):
            way = find(item) if is_wanted else None
            if way is not None and (best is None or way.cost < best.cost):
                best = way
        return best

    # -- recompute ----------------------------------------------------------------------------

    def _recompute(self, item: Item) -> Way | None:
        return next(iter(self.of_blocks((item,), self.part)), None)

    def of_blocks(
        self, items: Sequence[Item], part: Callable[[Item], Part | None], shortest: int = 1
    ) -> list[Way]:
        """The ways to recompute the first of these neighbours, at least so many of them.

        Blocks that cost no less than a shorter one are left out. O(what the items read that is not
        alive).
        """
        ways: list[Way] = []
        if not self._options.recompute:
            return ways
        saved = 0
        is_move = True
        for number, item in enumerate(items, 1):
            found = part(item)
            if found is None or found.must_stay:
                break
            saved += found.alive
            for buffer in found.ended:
                if buffer.definer < items[0]:  # else the block makes it
                    saved -= buffer.size
            is_move = is_move and not found.has_placed_user
            if number < shortest or saved <= 0:
                continue
            cost = 0 if is_move else self._limit // saved
            if not ways or cost < ways[-1].cost:
                ways.append(Way(cost, saved, Strategy.RECOMPUTE, tuple(items[:number])))
        return ways

    def part(self, item: Item) -> Part | None:
        """The share of an instruction in a block; None where it cannot be recomputed.

        O(its users and operands).
        """
        alive = 0
        for buffer in item.defined:
            if buffer.indirect_users or buffer.is_live_out or buffer.is_nested:
                return None
            if buffer.is_alive:
                alive += buffer.size
        ended = tuple(buffer for buffer in item.used if buffer.size and not buffer.is_alive)
        return Part(alive, ended, self._must_stay(item), self._has_placed_user(item))

    def saved_by_recomputing(self, item: Item) -> int:
        """Bytes less at the current instruction; what is kept alive longer is subtracted."""
        part = self.part(item)
        return 0 if part is None else part.alive - sum(buffer.size for buffer in part.ended)

    def _must_stay(self, item: Item) -> bool:
        instruction = item.instruction
        successors = instruction.control_successors
        if successors and any(self._tracker.item(s).is_placed for s in successors):
            return True
        return instruction.opcode in PARTS_OF_ASYNC and self._has_placed_user(item)

    def _has_placed_user(self, item: Item) -> bool:
        return any(self._tracker.item(user).is_placed for user in item.instruction.users)

    # -- compress and offload -------------------------------------------------------------------

    def _compress(self, item: Item) -> Way | None:
        buffer = self._own_array(item)
        if buffer is None:
            return None
        sizes, shape = self._state.sizes, item.instruction.shape
        size, compact_size = sizes.of(shape), sizes.of(sizes.compact(shape))
        saved = size - compact_size
        if saved <= 0 or size + compact_size >= self.peak or not self._reaches_later(item, buffer):
            return None
        return Way(self._limit // saved, saved, Strategy.COMPRESS, (item,))

    def _host_offload(self, item: Item) -> Way | None:
        buffer = self._own_array(item)
        if buffer is None or any(user.instruction.opcode in _NOT_TO_HOST for user in buffer.users):
            return None
        if not self._reaches_later(item, buffer) or not self._hides(item, buffer):
            return None
        return Way(self._limit // buffer.size, buffer.size, Strategy.HOST_OFFLOAD, (item,))

    def _own_array(self, item: Item) -> Buffer | None:
        """The one buffer of an array, as long as it is alive and of a size that counts.

        None for what only the end of an asynchronous operation may read.
        """
        if len(item.held) != 1 or not item.defined or not item.instruction.shape.is_array:
            return None
        if item.instruction.opcode in _READ_BY_THEIR_END:
            return None
        buffer = item.defined[0]
        return buffer if buffer.is_alive and buffer.size > 0 else None

    def _reaches_later(self, item: Item, buffer: Buffer) -> bool:
        """Whether all users to come can read another value: none reads an alias that is placed.

        O(users of placed aliases).
        """
        waiting = [item]
        for source in waiting:  # grows
            for instruction in source.instruction.users:
                user = self._tracker.item(instruction)
                if user.is_placed:
                    if buffer in user.held:
                        waiting.append(user)
                elif source is not item and (buffer in user.used or buffer in user.held):
                    return False
        return True

    def _hides(self, item: Item, buffer: Buffer) -> bool:
        """Whether what runs between two uses takes as long as both transfers.

        O(instructions between the uses, until that is so).
        """
        options = self._options
        to_host = options.bandwidth_to_host_bytes_per_second
        from_host = options.bandwidth_from_host_bytes_per_second
        assert to_host is not None  # the options have seen to that
        assert from_host is not None
        needed = buffer.size / to_host + buffer.size / from_host
        later = [user for user in buffer.users if not user.is_placed]
        if not later:
            return False
        place: Item | None = max((user for user in buffer.users if user.is_placed), default=item)
        end = min(later)
        time = 0.0
        while place is not None and place is not end:
            time += self._state.seconds(place.instruction)
            if 0 < time >= needed:
                return True
            place = place.after
        return False


_NOT_TO_HOST = (Opcode.BITCAST, Opcode.TUPLE)
_READ_BY_THEIR_END = STARTS | {Opcode.ASYNC_UPDATE}
