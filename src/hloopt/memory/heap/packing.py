"""Offsets for temporaries: best fit over the whole history, in two orders, the better one kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hloopt.memory.heap.address_space import AddressSpace
from hloopt.memory.heap.events import HeapTrace

if TYPE_CHECKING:
    from hloopt.memory.heap.chunk_table import ChunkTable

    _Space = AddressSpace | ChunkTable

_WINDOW = 256
"""After how many questions to ask whether a table would be faster."""
_RANGES, _GROUPS_PER_RANGE = 200, 100
"""It is where a question looks at 200 ranges and one more per 100 groups."""


@dataclass(frozen=True, slots=True)
class Packing:
    """The offset of each value of a trace in the heap, and the size of the heap."""

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
    space: _Space = AddressSpace(duration)
    offsets: dict[int, int] = {}
    height = 0
    for number, group in enumerate(groups):
        if not number % _WINDOW and isinstance(space, AddressSpace):
            space = _suited(space, groups, number, offsets, alignment)
        offset = space.best_gap(group.intervals, group.largest)
        offsets[group.value] = offset
        height = max(height, offset + group.largest)
        _take(space, group, offset, alignment)
    return height, offsets


def _take(space: _Space, group: _Group, offset: int, alignment: int) -> None:
    top = -(-(offset + group.largest) // alignment) * alignment
    for interval in group.intervals:
        space.take(offset, top, interval)


def _suited(
    space: AddressSpace,
    groups: list[_Group],
    placed: int,
    offsets: dict[int, int],
    alignment: int,
) -> _Space:
    """The space, turned into a table where the last questions had to look at very many ranges."""
    seen, space.ranges_seen = space.ranges_seen, 0
    if seen <= _WINDOW * (_RANGES + len(groups) // _GROUPS_PER_RANGE):
        return space
    from hloopt.memory.heap.chunk_table import ChunkTable

    table = ChunkTable()
    for group in groups[:placed]:
        _take(table, group, offsets[group.value], alignment)
    return table
