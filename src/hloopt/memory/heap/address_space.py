"""The addresses that are in use, over time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable

Interval = tuple[int, int]


class AddressSpace:
    """Ranges of addresses taken for intervals of time; answers what is taken during others.

    A binary tree over time. A node keeps what is taken during all of its span, and what is taken
    at any time of it; ranges that touch are one, so that these lists stay short where memory is
    densely packed. Both operations look at O(log duration) nodes.
    """

    def __init__(self, duration: int) -> None:
        self._leaves = 1 << max(duration - 1, 0).bit_length()
        self._throughout: defaultdict[int, _Ranges] = defaultdict(_Ranges)
        self._at_any_time: defaultdict[int, _Ranges] = defaultdict(_Ranges)
        self.ranges_seen = 0
        """The number of ranges all questions together had to look at."""

    def take(self, start: int, end: int, interval: Interval) -> None:
        """Take the addresses from `start` to before `end` during an interval, ends included."""
        nodes = self._cover(interval)
        for node in nodes:
            self._throughout[node].add(start, end)
        for node in (*nodes, *_above(nodes)):
            self._at_any_time[node].add(start, end)

    def best_gap(self, intervals: Iterable[Interval], wanted: int) -> int:
        """The offset of the shortest gap of at least `wanted` bytes, the lowest of equal ones.

        Of the gaps between what is taken at any time of the intervals, and the endless one above.
        """
        shortest = None
        found = bottom = 0
        for start, end in self.taken(intervals):
            if start - bottom >= wanted and (shortest is None or start - bottom < shortest):
                shortest, found = start - bottom, bottom
            if end > bottom:
                bottom = end
        return bottom if shortest is None else found

    def taken(self, intervals: Iterable[Interval]) -> list[Interval]:
        """The ranges taken at any time of some intervals, sorted; they may overlap."""
        nodes = list(dict.fromkeys(n for interval in intervals for n in self._cover(interval)))
        result: list[Interval] = []
        for node in nodes:
            if ranges := self._at_any_time.get(node):
                result += zip(ranges.starts, ranges.ends, strict=True)
        for node in _above(nodes):
            if ranges := self._throughout.get(node):
                result += zip(ranges.starts, ranges.ends, strict=True)
        result.sort()
        self.ranges_seen += len(result)
        return result

    def _cover(self, interval: Interval) -> list[int]:
        """The largest nodes that make up an interval."""
        nodes = []
        left, right = interval[0] + self._leaves, interval[1] + self._leaves + 1
        while left < right:
            if left & 1:
                nodes.append(left)
                left += 1
            if right & 1:
                right -= 1
                nodes.append(right)
            left >>= 1
            right >>= 1
        return nodes


def _above(nodes: Iterable[int]) -> dict[int, None]:
    found: dict[int, None] = {}
    for node in nodes:
        node >>= 1
        while node and node not in found:
            found[node] = None
            node >>= 1
    return found


class _Ranges:
    """Disjoint ranges in order; those that touch are one."""

    __slots__ = ("ends", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        starts, ends = self.starts, self.ends
        first = bisect_left(ends, start)
        behind = bisect_right(starts, end)
        if first == behind:
            starts.insert(first, start)
            ends.insert(first, end)
        elif start < starts[first] or end > ends[behind - 1] or behind - first > 1:
            starts[first:behind] = [min(start, starts[first])]
            ends[first:behind] = [max(end, ends[behind - 1])]
