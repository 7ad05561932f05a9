"""The number of intervals that overlap another."""

from __future__ import annotations

from dataclasses import dataclass


class OverlapCount:
    """Counts, of intervals of times that come and go, how many overlap a given one.

    Ends are included. Each operation takes O(log times).
    """

    def __init__(self, times: int) -> None:
        self._starts = _Counts(times)
        self._ends = _Counts(times)

    def add(self, start: int, end: int, number: int = 1) -> None:
        """Add an interval, or take one back with -1."""
        self._starts.add(start, number)
        self._ends.add(end, number)

    def overlapping(self, start: int, end: int) -> int:
        """The number of intervals with a time in common with [start, end]."""
        return self._starts.up_to(end) - self._ends.up_to(start - 1)


@dataclass(slots=True)
class _Counts:
    """Numbers at times, and sums of those up to a time: a Fenwick tree."""

    sums: list[int]

    def __init__(self, times: int) -> None:
        self.sums = [0] * (times + 3)

    def add(self, time: int, number: int) -> None:
        position = time + 2  # a copy may begin before the first time
        while position < len(self.sums):
            self.sums[position] += number
            position += position & -position

    def up_to(self, time: int) -> int:
        position, total = min(time + 2, len(self.sums) - 1), 0
        while position > 0:
            total += self.sums[position]
            position -= position & -position
        return total
