"""The bytes of the alternate memory that are taken, over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hloopt.memory_space.heap.gaps import free_gaps

_FIRST, _LAST, _LOW, _HIGH, _GROUP, _COPIED = range(6)
_NEVER = (np.iinfo(np.int64).max, -1, 0, 0, -1, 0)
"""A row that no question meets."""


@dataclass(slots=True, eq=False)
class Chunk:
    """A range of addresses. Allocations that must lie in one place hold the same chunk."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


class Part(NamedTuple):
    """A part of a chunk: its first byte within the chunk, and its size."""

    first: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """A chunk that is taken from one time to another, both included."""

    chunk: Chunk
    start: int
    end: int
    row: int


@dataclass(slots=True)
class ChunkHeap:
    """Reservations of chunks, and the gaps between them.

    A question looks at all reservations at once, in arrays: 10,000 of them take some 20 us.
    """

    alignment: int
    _rows: NDArray[np.int64] = field(default_factory=lambda: _empty(64))
    _free_rows: list[int] = field(default_factory=lambda: list(range(63, -1, -1)))
    _groups: dict[Chunk, int] = field(default_factory=dict)

    def take(
        self, chunk: Chunk, start: int, end: int, part: Part | None = None, *, copied: bool = False
    ) -> Reservation:
        """Take a chunk, or a part of it, for the times from `start` to `end`, both included.

        `copied`: a copy fills it, before the value is needed.
        """
        if not self._free_rows:
            size = self._rows.shape[1]
            self._rows = np.concatenate((self._rows, _empty(size)), axis=1)
            self._free_rows = list(range(2 * size - 1, size - 1, -1))
        row = self._free_rows.pop()
        low, high = _bounds(chunk, part)
        self._rows[:, row] = (start, end, low, high, self._group(chunk), copied)
        return Reservation(chunk, start, end, row)

    def give_back(self, reservation: Reservation) -> None:
        """Undo a `take`."""
        self._rows[:, reservation.row] = _NEVER
        self._free_rows.append(reservation.row)

    def unite(self, one: Chunk, other: Chunk) -> None:
        """Let two chunks at one offset count as the same place. O(reservations), in one step."""
        groups = self._rows[_GROUP]
        groups[groups == self._group(other)] = self._group(one)
        self._groups[other] = self._group(one)

    def group_of(self, chunk: Chunk) -> int:
        """A number that chunks in one place have in common."""
        return self._group(chunk)

    def move(self, offsets: Mapping[int, int]) -> None:
        """Give all chunks of some groups new offsets. O(chunks + reservations · groups)."""
        distances: dict[int, int] = {}
        for chunk, group in self._groups.items():
            if group in offsets:
                distances[group] = offsets[group] - chunk.offset
                chunk.offset = offsets[group]
        rows = self._rows
        for group, distance in distances.items():
            moved = rows[_GROUP] == group
            rows[_LOW][moved] += distance
            rows[_HIGH][moved] += distance

    def resize(self, reservation: Reservation, size: int) -> None:
        """Let a chunk that lies in one reservation be smaller."""
        reservation.chunk.size = size
        self._rows[_HIGH, reservation.row] = reservation.chunk.end

    def is_free(self, chunk: Chunk, start: int, end: int, part: Part | None = None) -> bool:
        """Whether nothing else is in a chunk from `start` to `end`, as a copy needs it.

        Another value in the same place may begin at `end`: an update in place of this one.
        """
        met, own = self._met(chunk, start, end, part)
        return not (met & ~(own & (self._rows[_FIRST] >= end))).any()

    def may_stay(self, chunk: Chunk, start: int, end: int) -> bool:
        """Whether a value can be in a chunk without a copy.

        It is not needed together with another value that has the same place, but a copy may fill
        the place too early.
        """
        met, own = self._met(chunk, start, end, None)
        filled = (self._rows[_COPIED] == 1) & (self._rows[_LAST] > start)
        return not (met & (~own | filled)).any()

    def _met(
        self, chunk: Chunk, start: int, end: int, part: Part | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The rows that meet a chunk, and those in one place with it."""
        low, high = _bounds(chunk, part)
        rows = self._rows
        met = (rows[_FIRST] <= end) & (rows[_LAST] >= start)
        met &= (rows[_LOW] < high) & (rows[_HIGH] > low)
        return met, rows[_GROUP] == self._groups.get(chunk, -2)

    def conflict(self) -> tuple[int, int] | None:
        """An address and a time at which two places overlap. O(reservations), in arrays, each."""
        rows = self._rows
        for row in np.flatnonzero(rows[_LAST] >= 0):
            first, last, low, high, group = rows[:_COPIED, row]
            met = (rows[_FIRST] <= last) & (rows[_LAST] >= first) & (rows[_GROUP] != group)
            met = np.flatnonzero(met & (rows[_LOW] < high) & (rows[_HIGH] > low))
            if met.size:
                other = rows[:, met[0]]
                return int(max(low, other[_LOW])), int(max(first, other[_FIRST]))
        return None

    def best_offset(self, size: int, start: int, end: int) -> int:
        """The offset in the smallest gap of at least `size` bytes; the lowest of equal gaps.

        The gap above everything counts as the largest, so that there always is one.
        """
        rows = self._rows
        met = np.flatnonzero((rows[_FIRST] <= end) & (rows[_LAST] >= start))
        if not met.size:
            return 0
        lows, highs = rows[_LOW][met], rows[_HIGH][met]
        order = np.argsort(lows, kind="stable")
        lows, tops = lows[order], np.maximum.accumulate(highs[order])
        bottoms = self._aligned(np.concatenate((np.zeros(1, np.int64), tops)))
        gaps = lows - bottoms[:-1]
        fitting = np.flatnonzero(gaps >= size)
        if not fitting.size:
            return int(bottoms[-1])
        return int(bottoms[fitting[np.argmin(gaps[fitting])]])

    def gaps(self, time: int, limit: int) -> list[tuple[int, int]]:
        """Offset and size of what is free below `limit` at a time, each from an aligned offset."""
        rows = self._rows
        met = np.flatnonzero((rows[_FIRST] <= time) & (rows[_LAST] >= time))
        lows, highs = rows[_LOW][met], self._aligned(rows[_HIGH][met])
        taken = sorted(zip(lows.tolist(), highs.tolist(), strict=True))
        gaps = ((offset, limit - offset, length) for length, offset in free_gaps(taken, 1))
        return [(offset, int(min(length, left))) for offset, left, length in gaps if left > 0]

    def _aligned(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        return -(-offsets // self.alignment) * self.alignment

    def _group(self, chunk: Chunk) -> int:
        return self._groups.setdefault(chunk, len(self._groups))


def _bounds(chunk: Chunk, part: Part | None) -> tuple[int, int]:
    """The addresses of a part of a chunk, or of all of it."""
    if part is None:
        return chunk.offset, chunk.end
    low = chunk.offset + part.first
    return low, low + part.size


def _empty(size: int) -> NDArray[np.int64]:
    return np.repeat(np.array(_NEVER, np.int64)[:, None], size, axis=1)
