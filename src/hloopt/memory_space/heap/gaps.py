"""Gaps between ranges of addresses that are in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf


def free_gaps(taken: Iterable[tuple[int, int]], size: int) -> Iterator[tuple[float, int]]:
    """The length and the offset of each gap of at least `size` bytes; the last one is endless.

    `taken` are ranges in order of their starts, which may overlap.
    """
    bottom = 0
    for start, end in taken:
        if start - bottom >= size:
            yield start - bottom, bottom
        if end > bottom:
            bottom = end
    yield inf, bottom


def best_gap(taken: Iterable[tuple[int, int]], size: int) -> int:
    """The offset of the shortest of these gaps, the lowest of equal ones."""
    return min(free_gaps(taken, size))[1]


def aligned(offset: int, alignment: int) -> int:
    """The lowest multiple of the alignment that is not below an offset."""
    return -(-offset // alignment) * alignment
