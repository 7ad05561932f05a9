"""The time that instructions leave for asynchronous copies."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf

_UNITS_PER_SECOND = 1 << 50


class CopyResource:
    """The seconds at each logical time, and the asynchronous copies that use them.

    A copy uses the times strictly between its start, -1 or later, and its end. Copies are served
    by start, those with equal starts in order of insertion: a new one may push later ones. Amounts
    are integers of 2⁻⁵⁰ seconds, so that equal sums compare equal and removal is exact.

    The copies wait in one queue. `_backlog` is what the queue still holds after a time; a copy that
    starts there ends in time where this is at most the copy's own slack. Adding or removing a copy
    changes the backlog from its start to the time that absorbs it, and takes time in proportion.
    """

    def __init__(self, seconds: Sequence[float]) -> None:
        self._free = [_units(amount) for amount in seconds]
        self._before = [0, *accumulate(self._free)]
        """The units of all times before each."""
        places = len(self._before)  # start -1, and each time
        self._backlog = [0] * places
        """By start + 1: what copies with earlier starts still need after the start."""
        self._slack: list[float] = [inf] * places
        """By start + 1: the largest backlog with which the copies of the start end in time."""
        self._queues: dict[int, _Queue] = {}
        self._copies: dict[Hashable, tuple[int, int]] = {}
        """The start and the units of each copy."""

    def has_enough(self, start: int, end: int, seconds: float) -> bool:
        """Whether a copy that takes `seconds`, and all that it pushes, would end in time."""
        left = _units(seconds)
        if not left:
            return True
        assert start >= -1
        left_over = self._units_between(start, end) - left
        if left_over < 0:
            return False
        queue = self._queues.get(start)
        if self._backlog[start + 1] + (queue.units if queue else 0) > left_over:
            return False
        free, backlog, slack = self._free, self._backlog, self._slack
        time = start
        while True:  # the last copy of the queue ends in time, or was refused on the way
            time += 1
            left -= min(left, free[time])
            if not left:
                return True
            if backlog[time + 1] + left > slack[time + 1]:
                return False

    def has_enough_together(self, copies: Iterable[tuple[int, int, float]]) -> bool:
        """Whether several copies (start, end, seconds), added in this order, would end in time."""
        added: list[Hashable] = []
        fits = True
        for start, end, seconds in copies:
            fits = self.has_enough(start, end, seconds)
            if not fits:
                break
            added.append(object())
            self.add(start, end, seconds, added[-1])
        for key in reversed(added):
            self.remove(key)
        return fits

    def add(self, start: int, end: int, seconds: float, key: Hashable) -> None:
        """Add a copy, for which there has to be enough, under a key that no other copy has."""
        assert key not in self._copies
        assert self.has_enough(start, end, seconds)
        left = _units(seconds)
        self._copies[key] = start, left
        if not left:
            return
        queue = self._queues.setdefault(start, _Queue())
        queue.add(key, left, self._units_between(start, end))
        self._slack[start + 1] = queue.slack
        time = start
        while True:
            time += 1
            used = min(left, self._free[time])
            self._free[time] -= used
            left -= used
            if not left:
                return
            self._backlog[time + 1] += left

    def remove(self, key: Hashable) -> None:
        """Remove the copy that was added under a key. Raises KeyError where there is none."""
        start, left = self._copies.pop(key)
        if not left:
            return
        queue = self._queues[start]
        queue.remove(key)
        self._slack[start + 1] = queue.slack
        if not queue.copies:
            del self._queues[start]
        time = start
        while left:
            time += 1
            kept = min(left, self._backlog[time + 1])
            self._backlog[time + 1] -= kept
            self._free[time] += left - kept
            left = kept

    def free(self) -> list[float]:
        """The seconds at each time that no copy uses."""
        return [units / _UNITS_PER_SECOND for units in self._free]

    def _units_between(self, start: int, end: int) -> int:
        """The units of all times strictly between two times."""
        if end <= start:
            return 0
        last = len(self._before) - 1
        return self._before[min(end, last)] - self._before[min(start + 1, last)]


@dataclass(slots=True)
class _Queue:
    """The copies with one start, in order of insertion."""

    copies: dict[Hashable, tuple[int, int]] = field(default_factory=dict)
    """The units that each takes, and those of all times between its start and its end."""
    units: int = 0
    """The sum over the copies."""
    slack: float = inf
    """The largest backlog before them with which all end in time."""

    def add(self, key: Hashable, units: int, most: int) -> None:
        self.copies[key] = units, most
        self.units += units
        self.slack = min(self.slack, most - self.units)

    def remove(self, key: Hashable) -> None:
        copies = self.copies
        del copies[key]
        self.copies, self.units, self.slack = {}, 0, inf
        for other, (units, most) in copies.items():
            self.add(other, units, most)


def _units(seconds: float) -> int:
    return round(seconds * _UNITS_PER_SECOND)
