"""Measured times made monotone: what is larger takes no less.

Both ways leave times alone that are in order. Times are in microseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod, sqrt

_Place = tuple[int, ...]


def isotonic_medians(times: Sequence[float]) -> list[float]:
    """The times in an order that never falls: neighbours that violate it take their common median.

    That is the isotonic regression of least absolute error, of the times and of their logarithms
    alike, so that one outlier moves nothing far. Of an even number the lower median counts: each
    result is a time that was given. O(n²).
    """
    blocks: list[list[float]] = []
    for time in times:
        block = [time]
        while blocks and _median(blocks[-1]) > _median(block):
            smaller, larger = sorted((blocks.pop(), block), key=len)
            for value in smaller:
                insort(larger, value)
            block = larger
        blocks.append(block)
    return [_median(block) for block in blocks for _ in block]


def _median(ascending: Sequence[float]) -> float:
    return ascending[(len(ascending) - 1) // 2]


class SmoothCurve:
    """The time of a transfer by its bytes: monotone, through medians of what was measured.

    Between measured sizes times are interpolated linearly. Below the smallest they are those of the
    smallest, for that is mostly latency; above the largest the throughput stays what it is there.
    """

    def __init__(self, times: Mapping[int, float]) -> None:
        """`times` by positive sizes in bytes, at least one."""
        self._sizes = sorted(times)
        self._times = isotonic_medians([times[size] for size in self._sizes])

    def time(self, size: int) -> float:
        """The time of so many bytes; 0 for none. O(log n)."""
        sizes, times = self._sizes, self._times
        if size <= 0:
            return 0.0
        above = bisect_left(sizes, size)
        if above == len(sizes):
            return times[-1] * size / sizes[-1]
        if above == 0 or sizes[above] == size:
            return times[above]
        low, high = sizes[above - 1], sizes[above]
        share = (size - low) / (high - low)
        return times[above - 1] * (1 - share) + times[above] * share


class SmoothGrid:
    """The time of a product by its sizes: monotone in each, from what was measured on a grid.

    A measured time becomes the geometric mean of the longest time of what is nowhere larger and the
    shortest of what is nowhere smaller, whose largest relative error is the least there can be.
    Between measured sizes times are interpolated linearly in each of them; beyond, they grow and
    shrink with the size.
    """

    def __init__(self, axes: Sequence[Sequence[int]], times: Sequence[float]) -> None:
        """`axes` with ascending positive sizes; `times` in row-major order. O(times)."""
        self._axes = axes
        self._strides = [prod(map(len, axes[number + 1 :])) for number in range(len(axes))]
        longest, shortest = list(times), list(times)
        places = list(product(*(range(len(axis)) for axis in axes)))
        for place in places:
            index = self._index(place)
            for below in self._neighbours(place, -1):
                longest[index] = max(longest[index], longest[below])
        for place in reversed(places):
            index = self._index(place)
            for above in self._neighbours(place, 1):
                shortest[index] = min(shortest[index], shortest[above])
        self._times = [
            time if low == high else sqrt(low * high)
            for time, low, high in zip(times, shortest, longest, strict=True)
        ]

    def time(self, point: Sequence[int]) -> float:
        """The time of a product of these sizes; 0 if one is 0. O(2 ** dimensions)."""
        beyond, corners = 1.0, []
        for size, axis in zip(point, self._axes, strict=True):
            inside = min(max(size, axis[0]), axis[-1])
            beyond *= size / inside
            low = bisect_right(axis, inside) - 1
            share = (
                0.0 if axis[low] == inside else (inside - axis[low]) / (axis[low + 1] - axis[low])
            )
            corners.append([(low, 1 - share), (low + 1, share)] if share else [(low, 1.0)])
        return beyond * sum(
            self._times[self._index(tuple(place for place, _ in corner))]
            * prod(weight for _, weight in corner)
            for corner in product(*corners)
        )

    def _index(self, place: _Place) -> int:
        return sum(number * stride for number, stride in zip(place, self._strides, strict=True))

    def _neighbours(self, place: _Place, step: int) -> list[int]:
        """The indices of the places one step away in one dimension."""
        index = self._index(place)
        return [
            index + step * stride
            for number, axis, stride in zip(place, self._axes, self._strides, strict=True)
            if 0 <= number + step < len(axis)
        ]
