"""Blocks of bytes that are taken for some time, and those that get in each other's way."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple


class Block(NamedTuple):
    """Bytes [offset, offset + size) that are taken at all times from start to end."""

    start: int
    end: int
    offset: int
    size: int
    owner: str
    """Its name in messages."""
    place: int
    """Blocks of one place may overlap."""


def overlaps(blocks: Iterable[Block]) -> Iterator[tuple[Block, Block]]:
    """Pairs of blocks of different places with a byte and a time in common; the earlier one first.

    Each block that is in the way of earlier ones comes once. O(n log n), beside what moving the
    elements of a list costs.
    """
    taken: list[tuple[int, int, Block]] = []  # (offset, number), which do not overlap
    ends: list[tuple[int, tuple[int, int, Block]]] = []
    for number, block in enumerate(sorted(b for b in blocks if b.size)):
        while ends and ends[0][0] < block.start:
            _, gone = heappop(ends)
            del taken[bisect_left(taken, gone)]
        entry = block.offset, number, block
        at = bisect_left(taken, entry)
        neighbours = [taken[i][2] for i in (at - 1, at) if 0 <= i < len(taken)]
        for other in neighbours:
            is_apart = other.offset + other.size <= block.offset or (
                block.offset + block.size <= other.offset
            )
            if not is_apart and other.place != block.place:
                yield other, block
                break
        else:
            insort(taken, entry)
            heappush(ends, (block.end, entry))
