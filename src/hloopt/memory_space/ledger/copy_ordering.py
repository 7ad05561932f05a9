"""The order of asynchronous copies: first started, first done."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable
from math import inf


class CopyOrdering:
    """Asynchronous copies; answers whether another one would overtake or be overtaken.

    Two copies violate the order when one starts strictly earlier and ends strictly later than the
    other. Times are logical; a copy starts after its start time, which is -1 or later.

    A binary tree over start times keeps the earliest and the latest end of each node, so every
    operation looks at O(log times) nodes.
    """

    def __init__(self) -> None:
        self._copies: dict[Hashable, tuple[int, int]] = {}
        self._ends: dict[int, list[int]] = {}
        """The ends of the copies with each start, sorted."""
        self._clear(1)

    def add(self, start: int, end: int, key: Hashable) -> None:
        """Add a copy under a key that no other copy has, whether or not it violates the order."""
        assert start >= -1
        assert key not in self._copies
        self._copies[key] = start, end
        insort(self._ends.setdefault(start, []), end)
        if start + 1 < self._leaves:
            self._update(start)
            return
        self._clear(1 << (start + 1).bit_length())
        for known in self._ends:
            self._update(known)

    def remove(self, key: Hashable) -> None:
        """Remove the copy that was added under a key. Raises KeyError where there is none."""
        start, end = self._copies.pop(key)
        ends = self._ends[start]
        del ends[bisect_left(ends, end)]
        self._update(start)

    def violates(self, start: int, end: int) -> bool:
        """Whether a copy from `start` to `end` would violate the order with one of the copies."""
        leaf = start + 1
        if leaf >= self._leaves:
            return self._latest[1] > end
        node = self._leaves + leaf
        while node > 1:
            if node & 1:
                if self._latest[node - 1] > end:
                    return True
            elif self._earliest[node + 1] < end:
                return True
            node >>= 1
        return False

    def _clear(self, leaves: int) -> None:
        """Make the tree one without copies, for the start times before `leaves - 1`."""
        self._leaves = leaves
        self._earliest: list[float] = [inf] * (2 * leaves)
        self._latest: list[float] = [-inf] * (2 * leaves)

    def _update(self, start: int) -> None:
        """Bring the nodes above a start time up to date with its copies."""
        earliest, latest = self._earliest, self._latest
        ends = self._ends.get(start)
        node = self._leaves + start + 1
        earliest[node] = ends[0] if ends else inf
        latest[node] = ends[-1] if ends else -inf
        node >>= 1
        while node:
            earliest[node] = min(earliest[2 * node], earliest[2 * node + 1])
            latest[node] = max(latest[2 * node], latest[2 * node + 1])
            node >>= 1
