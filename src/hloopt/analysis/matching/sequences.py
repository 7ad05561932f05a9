"""Longest ascending and common subsequences."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence

_MOST_CELLS = 40_000
"""Largest table of `_longest`; longer parts are divided at common items first."""


def ascending(values: Sequence[int]) -> list[int]:
    """Indices of a longest ascending subsequence. O(n log n)."""
    tails: list[int] = []  # the smallest last value of an ascending run of each length
    ends: list[int] = []  # the index of that value
    previous: list[int] = []
    for index, value in enumerate(values):
        length = bisect_left(tails, value)
        previous.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [value]
        ends[length : length + 1] = [index]
    kept: list[int] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        kept.append(index)
        index = previous[index]
    return kept[::-1]


def common_subsequence(
    old: Sequence[Hashable], new: Sequence[Hashable]
) -> Iterator[tuple[int, int]]:
    """Indices of a common subsequence; a longest one if the sequences are short.

    Long sequences are divided at items that occur equally often in both; without such items only
    common prefix and suffix are found. O(n log n).
    """
    pieces = [(0, len(old), 0, len(new))]
    while pieces:
        a, a_end, b, b_end = pieces.pop()
        while a < a_end and b < b_end and old[a] == new[b]:
            yield a, b
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and old[a_end - 1] == new[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
            yield a_end, b_end
        if a == a_end or b == b_end:
            continue
        if (a_end - a) * (b_end - b) <= _MOST_CELLS:
            for x, y in _longest(old[a:a_end], new[b:b_end]):
                yield a + x, b + y
            continue
        cuts = _as_often(old, new, (a, a_end, b, b_end))
        for x, y in cuts:
            yield x, y
            pieces.append((a, x, b, y))
            a, b = x + 1, y + 1
        if cuts:
            pieces.append((a, a_end, b, b_end))


def _as_often(
    old: Sequence[Hashable], new: Sequence[Hashable], piece: tuple[int, int, int, int]
) -> list[tuple[int, int]]:
    """Pairs of items that occur equally often in both parts, as an ascending subsequence."""
    a, a_end, b, b_end = piece
    places: list[dict[Hashable, list[int]]] = []
    for items, start, end in ((old, a, a_end), (new, b, b_end)):
        found: dict[Hashable, list[int]] = {}
        for index in range(start, end):
            found.setdefault(items[index], []).append(index)
        places.append(found)
    pairs = [
        pair
        for key, indices in places[0].items()
        if len(indices) == len(others := places[1].get(key, ()))
        for pair in zip(indices, others, strict=True)
    ]
    pairs.sort()
    return [pairs[index] for index in ascending([y for _, y in pairs])]


def _longest(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[tuple[int, int]]:
    """A longest common subsequence, as indices. O(len(old) * len(new))."""
    lengths = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for a in range(len(old) - 1, -1, -1):
        row, below, item = lengths[a], lengths[a + 1], old[a]
        for b in range(len(new) - 1, -1, -1):
            row[b] = below[b + 1] + 1 if item == new[b] else max(below[b], row[b + 1])
    a = b = 0
    while a < len(old) and b < len(new):
        if old[a] == new[b]:
            yield a, b
            a, b = a + 1, b + 1
        elif lengths[a + 1][b] >= lengths[a][b + 1]:
            a += 1
        else:
            b += 1
