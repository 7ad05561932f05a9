"""Offsets for temporaries: best fit over the whole history, in two orders, the better one kept."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.memory.address_space import AddressSpace
from hloopt.memory.heap_events import HeapTrace


@dataclass(frozen=True, slots=True)
class Packing:
    """Where each value of a trace lies in the heap, and how large the heap is."""

    offsets: dict[int, int]
    size: int


@dataclass(slots=True, eq=False)
class _Group:
    """Values at one offset: one that is allocated, and those that share with it."""

    value: int
    values: list[int]
    size: int
    """Of the allocated value."""
    largest: int
    intervals: list[tuple[int, int]]
    """In ticks, both ends included; the allocated value's first."""


def pack(trace: HeapTrace, alignment: int) -> Packing:
    """Give every value an offset. Values without size get 0."""
    offsets = dict.fromkeys(trace.root, 0)
    groups = [_group(trace, root, values) for root, values in trace.groups().items()]
    groups = [group for group in groups if group.largest]
    best: tuple[int, dict[int, int]] | None = None
    for order in (_spatial, _temporal):
        found = _place(sorted(groups, key=order), alignment)
        if best is None or found[0] < best[0]:
            best = found
    assert best is not None
    size, placed = best
    for group in groups:
        for value in group.values:
            offsets[value] = placed[group.value]
    return Packing(offsets, size)


def _group(trace: HeapTrace, root: int, values: list[int]) -> _Group:
    intervals = [(trace.first_tick[v], trace.last_tick[v]) for v in values if trace.size[v]]
    return _Group(root, values, trace.size[root], max(trace.size[v] for v in values), intervals)


def _spatial(group: _Group) -> tuple[int, int, int]:
    start, end = group.intervals[0]
    return -group.size, start - end, group.value


def _temporal(group: _Group) -> tuple[int, int, int]:
    start = min(start for start, _ in group.intervals)
    end = max(end for _, end in group.intervals)
    return start - end, -group.size, group.value


def _place(groups: list[_Group], alignment: int) -> tuple[int, dict[int, int]]:
    """Best fit in the given order: the heap's size, and offsets by allocated value."""
    duration = 1 + max((end for group in groups for _, end in group.intervals), default=0)
    space = AddressSpace(duration)
    offsets: dict[int, int] = {}
    height = 0
    for group in groups:
        offset = _best_gap(space.taken(group.intervals), group)
        offsets[group.value] = offset
        top = offset + group.largest
        height = max(height, top)
        aligned_top = -(-top // alignment) * alignment
        for interval in group.intervals:
            space.take(offset, aligned_top, interval)
    return height, offsets


def _best_gap(taken: list[tuple[int, int]], group: _Group) -> int:
    """Where the shortest gap that holds the group begins, the lowest of equal ones."""
    wanted = group.largest
    shortest = None
    found = bottom = 0
    for start, end in taken:
        if start - bottom >= wanted and (shortest is None or start - bottom < shortest):
            shortest, found = start - bottom, bottom
        if end > bottom:
            bottom = end
    return bottom if shortest is None else found
