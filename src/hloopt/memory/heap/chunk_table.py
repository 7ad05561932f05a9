"""All ranges of addresses with the times they are taken, in arrays that are searched at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hloopt.memory.heap.address_space import Interval

_RECENT = 512
"""The number of ranges that wait until they are put in order with the others."""
_START, _END, _FIRST, _LAST = range(4)


class ChunkTable:
    """Answers the questions of `AddressSpace` where very many ranges are taken at one time.

    A question looks at every range, but a million of them take about a millisecond.
    """

    def __init__(self) -> None:
        self._sorted = np.empty((4, 0), np.int64)
        self._recent = np.empty((4, _RECENT), np.int64)
        self._count = 0

    def take(self, start: int, end: int, interval: Interval) -> None:
        """Take the addresses from `start` to before `end` during an interval, ends included."""
        if self._count == _RECENT:
            self._put_in_order()
        self._recent[:, self._count] = start, end, *interval
        self._count += 1

    def best_gap(self, intervals: Sequence[Interval], wanted: int) -> int:
        """The offset of the shortest gap of at least `wanted` bytes, the lowest of equal ones.

        Of the gaps between what is taken at any time of the intervals, and the endless one above.
        """
        starts, ends = self._taken(intervals)
        if not starts.size:
            return 0
        tops = np.maximum.accumulate(ends)
        bottoms = np.concatenate((_ZERO, tops[:-1]))
        gaps = starts - bottoms
        fitting = np.flatnonzero(gaps >= wanted)
        if not fitting.size:
            return int(tops[-1])
        return int(bottoms[fitting[np.argmin(gaps[fitting])]])

    def _taken(self, intervals: Iterable[Interval]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        recent = self._recent[:, : self._count]
        old, new = _meeting(self._sorted, intervals), _meeting(recent, intervals)
        starts = np.concatenate((self._sorted[_START][old], recent[_START][new]))
        ends = np.concatenate((self._sorted[_END][old], recent[_END][new]))
        if not new.size:
            return starts, ends
        order = np.argsort(starts, kind="stable")
        return starts[order], ends[order]

    def _put_in_order(self) -> None:
        together = np.concatenate((self._sorted, self._recent), axis=1)
        self._sorted = together[:, np.argsort(together[_START], kind="stable")]
        self._count = 0


_ZERO = np.zeros(1, np.int64)


def _meeting(chunks: NDArray[np.int64], intervals: Iterable[Interval]) -> NDArray[np.int64]:
    """The numbers of the chunks that are taken at any time of the intervals."""
    found = np.zeros(chunks.shape[1], np.bool_)
    for first, last in intervals:
        found |= (chunks[_FIRST] <= last) & (chunks[_LAST] >= first)
    return np.flatnonzero(found)
