"""Packing and its replay beside slow ones that follow the words of XLA's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.memory.heap.events import Event, EventKind, HeapTrace
from hloopt.memory.heap.packing import pack
from hloopt.memory.heap.replay import replay

Interval = tuple[int, int]
Group = list[tuple[int, Interval]]
"""Sizes of values at one place, with the ticks at which each is taken and freed."""


def trace_of(groups: list[Group]) -> HeapTrace:
    """Values are numbered group by group; the first of each is the one that is allocated."""
    trace = HeapTrace()
    for group in groups:
        root = len(trace.root)
        for size, (start, end) in group:
            value = len(trace.root)
            trace.root[value], trace.size[value] = root, size
            if size:
                trace.first_tick[value], trace.last_tick[value] = start, end
    return trace


def slow_pack(groups: list[Group], alignment: int) -> tuple[list[int], int]:
    """The offset of each group and the size of the heap."""
    numbered = [(number, group) for number, group in enumerate(groups)]
    sized = [(n, [v for v in group if v[0]]) for n, group in numbered]
    sized = [(n, group) for n, group in sized if group]

    def spatial(item: tuple[int, Group]) -> tuple[int, int, int]:
        size, (start, end) = item[1][0]
        return -size, start - end, item[0]

    def temporal(item: tuple[int, Group]) -> tuple[int, int, int]:
        start = min(start for _, (start, _) in item[1])
        end = max(end for _, (_, end) in item[1])
        return start - end, -item[1][0][0], item[0]

    best: tuple[dict[int, int], int] | None = None
    for order in (spatial, temporal):
        found = _placed(sorted(sized, key=order), alignment)
        if best is None or found[1] < best[1]:
            best = found
    assert best is not None
    return [best[0].get(number, 0) for number in range(len(groups))], best[1]


def _placed(ordered: list[tuple[int, Group]], alignment: int) -> tuple[dict[int, int], int]:
    offsets: dict[int, int] = {}
    chunks: list[tuple[int, int, Interval]] = []
    for number, group in ordered:
        largest = max(size for size, _ in group)
        taken = {
            address
            for low, high, (first, last) in chunks
            for address in range(low, -(-high // alignment))
            if any(start <= last and first <= end for _, (start, end) in group)
        }
        free = [a for a in range(max(taken, default=-1) + 1) if a not in taken]
        runs: list[list[int]] = []
        for address in free:
            if runs and runs[-1][-1] == address - 1:
                runs[-1].append(address)
            else:
                runs.append([address])
        fitting = [run for run in runs if len(run) * alignment >= largest]
        chosen = min(fitting, key=len)[0] if fitting else max(taken, default=-1) + 1
        offsets[number] = chosen * alignment
        top = offsets[number] + largest
        chunks += [(chosen, top, interval) for _, interval in group]
    return offsets, max((high for _, high, _ in chunks), default=0)


intervals = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda p: (min(p), max(p)))
groups_of_one = st.tuples(st.integers(0, 6), intervals).map(lambda value: [value])
groups = st.one_of(
    groups_of_one,
    st.tuples(st.integers(1, 6), st.lists(intervals, min_size=2, max_size=3)).map(
        lambda parts: [(parts[0], interval) for interval in parts[1]]
    ),
)


@given(st.lists(groups, max_size=9), st.sampled_from((1, 4)))
def test_offsets_are_those_of_the_slow_packing(found: list[Group], alignment: int) -> None:
    packing = pack(trace_of(found), alignment)
    offsets, size = slow_pack(found, alignment)
    assert packing.size == size
    expected = [offset for offset, group in zip(offsets, found, strict=True) for _ in group]
    assert list(packing.offsets.values()) == expected


def test_a_heap_without_values_is_empty() -> None:
    assert pack(HeapTrace(), 64).size == 0
    assert pack(trace_of([[(0, (0, 0))]]), 64).offsets == {0: 0}


# -- replay ---------------------------------------------------------------------------------------

A, B, C, D = range(4)
ALLOC, FREE, SHARE = EventKind.ALLOC, EventKind.FREE, EventKind.SHARE
HISTORY = [
    Event(ALLOC, A, 1, A),
    Event(ALLOC, B, 2, B),
    Event(SHARE, C, 3, A),
    Event(FREE, A, 3, A),
    Event(ALLOC, D, 4, D),
    Event(FREE, B, 4, B),
    Event(FREE, C, 5, C),
    Event(FREE, D, 6, D),
]


@pytest.mark.parametrize(
    ("sizes", "peak", "time", "live", "changes"),
    [
        ((4, 2, 4, 1), 7, 4, [A, B, D], [4, 6, 6, 6, 7, 5, 1, 0]),
        ((4, 2, 9, 1), 7, 4, [A, B, D], [4, 6, 6, 6, 7, 5, 1, 0]),  # the place counts once
        ((4, 2, 4, 0), 6, 2, [A, B], [4, 6, 6, 6, 6, 4, 0, 0]),  # when it is first reached
        ((0, 0, 0, 0), 0, 0, [], [0] * 8),
    ],
)
def test_bytes_alive_after_each_event(
    sizes: tuple[int, ...], peak: int, time: int, live: list[int], changes: list[int]
) -> None:
    trace = HeapTrace(events=HISTORY, root={A: A, B: B, C: A, D: D})
    found = replay(trace, sizes.__getitem__)
    assert (found.peak, found.peak_time, found.live_at_peak) == (peak, time, live)
    assert found.changes == [
        (event.time, size) for event, size in zip(HISTORY, changes, strict=True)
    ]


def test_a_place_that_is_taken_again_is_alive_again() -> None:
    events = [Event(ALLOC, A, 0, A), Event(FREE, A, 1, A), Event(SHARE, C, 2, A)]
    found = replay(HeapTrace(events=events, root={A: A, C: A}), lambda _: 8)
    assert found.changes == [(0, 8), (1, 0), (2, 8)]
    assert (found.peak_time, found.live_at_peak) == (0, [A])
