"""Whether two values that are needed at the same time lie in the same bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from hloopt.memory.allocations import Allocation
from hloopt.memory.assignment import BufferAssignment

Chunk = tuple[int, int, int]
"""First byte, the byte behind the last, and the value there."""


def overlaps(assignment: BufferAssignment) -> list[tuple[int, int]]:
    """Pairs of values in different buffers that destroy each other; empty if all is well.

    Values that only meet, one ending where the other starts, may lie in one place: the one is
    written over the other. O(values · log values).
    """
    return [
        pair
        for allocation in assignment.allocations
        if not allocation.is_thread_local
        for pair in _overlaps_in(assignment, allocation)
    ]


def _overlaps_in(assignment: BufferAssignment, allocation: Allocation) -> Iterator[tuple[int, int]]:
    ranges, buffers = assignment.ranges, assignment.buffers
    starting: dict[int, list[int]] = {}
    ending: dict[int, list[int]] = {}
    for value in allocation.offsets:
        if ranges.start[value] >= 0 and buffers.value_size(value):
            starting.setdefault(ranges.start[value], []).append(value)
            ending.setdefault(ranges.end[value], []).append(value)
    live: list[Chunk] = []
    for time in sorted(starting.keys() | ending.keys()):
        for value in ending.get(time, ()):
            if ranges.start[value] < time:
                chunk = _chunk(assignment, allocation, value)
                live.pop(bisect_left(live, chunk))
        points = [v for v in starting.get(time, ()) if ranges.end[v] == time]
        spans = [v for v in starting.get(time, ()) if ranges.end[v] > time]
        for value in (*points, *spans):
            chunk = _chunk(assignment, allocation, value)
            for other in _meeting(live, chunk):
                if buffers.of_value[other] is not buffers.of_value[value]:
                    yield other, value
            if ranges.end[value] > time:
                live.insert(bisect_left(live, chunk), chunk)


def _chunk(assignment: BufferAssignment, allocation: Allocation, value: int) -> Chunk:
    start = allocation.offsets[value]
    return start, start + assignment.buffers.value_size(value), value


def _meeting(live: list[Chunk], chunk: Chunk) -> Iterator[int]:
    """The values of live chunks that share a byte with one; live ones lie apart, or are found."""
    start, end, _ = chunk
    at = bisect_left(live, (start, 0, 0))
    for first, _, value in live[at:]:
        if first >= end:
            break
        yield value
    for _, last, value in reversed(live[:at]):
        if last <= start:
            break
        yield value
