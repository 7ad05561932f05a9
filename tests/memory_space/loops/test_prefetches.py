"""Prefetches in every iteration: when they begin, and where they have room."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory_space.loops.unrolled import program, step

from hloopt.analysis.dataflow import Use
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.heap.loop_heap import LoopHeap
from hloopt.memory_space.loop_optimizer.prefetches import PrefetchPlacer
from hloopt.memory_space.loop_optimizer.values import LoopValue, ValueKind
from hloopt.memory_space.options.cost_options import CostOptions
from hloopt.memory_space.options.parts import LoopOptimizerOptions

MODULE = program(["a = negate(v)"])
USE = Use(step(MODULE, "a"), 0, 0)


def value(size: int, *uses: int) -> LoopValue:
    """A value of so many bytes, whose copy takes as many seconds, read at these indices."""
    buffer = Buffer(0, [], size, 0)
    return LoopValue(buffer, ValueKind.PREFETCH, [], [(index, USE) for index in uses])


def placed(
    values: list[LoopValue],
    idle: list[float],
    *,
    room: int = 100,
    ratio: float = 1.0,
    pipelined: bool = False,
) -> PrefetchPlacer:
    placer = PrefetchPlacer(
        len(idle),
        LoopHeap(room, len(idle)),
        MemorySpaceCosts(MODULE, CostOptions(bytes_per_second=1)),
        LoopOptimizerOptions(
            desired_copy_ratio=ratio, allow_unsatisfied_fully_pipelined_prefetch=pipelined
        ),
        list(idle),
    )
    placer.place_all(values)
    return placer


def begins(placer: PrefetchPlacer, values: list[LoopValue]) -> list[int | None]:
    found = {prefetch.value: prefetch.begin for prefetch in placer.placed}
    return [found.get(each) for each in values]


@pytest.mark.parametrize(
    ("sizes_and_uses", "expected"),
    [
        pytest.param([(2, 4)], [2], id="as late as the copy is hidden"),
        pytest.param([(2, 4), (2, 4), (2, 4)], [2, 0, -2], id="each uses bandwidth up"),
        pytest.param([(2, 4), (2, 4), (2, 4), (1, 4)], [2, 0, -2, None], id="nothing is left"),
        pytest.param([(6, 3)], [-3], id="from the use in the iteration before on"),
        pytest.param([(7, 3)], [None], id="more than an iteration"),
        pytest.param([(2, 1, 4)], [-1], id="for the first of several uses"),
        pytest.param([(4, 1, 4)], [None], id="the chunk is free after the last use"),
        pytest.param([(1, 5), (4, 1)], [2, -4], id="the one before is overtaken"),
        pytest.param([(1, 5), (1, 1)], [4, 0], id="the one before is not"),
        pytest.param([(4, 5), (1, 3)], [1, 0], id="none within another one"),
    ],
)
def test_a_prefetch_begins_where_its_copy_is_paid(
    sizes_and_uses: list[tuple[int, ...]], expected: list[int | None]
) -> None:
    values = [value(*each) for each in sizes_and_uses]
    assert begins(placed(values, [1.0] * 6), values) == expected


@pytest.mark.parametrize(
    ("size", "ratio", "pipelined", "expected"),
    [
        (8, 1, False, None),
        (8, 0.5, False, -3),  # the first index at which half of it is paid
        (8, 0.75, False, -5),
        (8, 0.8, False, None),
        (8, 0.8, True, -5),
        (4, 0.5, True, -3),  # all of it is better
    ],
)
def test_less_than_the_whole_copy_may_be_hidden(
    size: int, ratio: float, pipelined: bool, expected: int | None
) -> None:
    values = [value(size, 1)]
    placer = placed(values, [1.0] * 6, ratio=ratio, pipelined=pipelined)
    assert begins(placer, values) == [expected]


@pytest.mark.parametrize(
    ("room", "ratio", "expected"), [(8, 1, -5), (7, 1, None), (7, 0.5, -2), (3, 0.5, None)]
)
def test_a_prefetch_needs_room_for_all_its_time(
    room: int, ratio: float, expected: int | None
) -> None:
    """Copies of two iterations are there at index 1 if all of one is hidden."""
    values = [value(4, 1)]
    placer = placed(values, [1.0, 0.5, 0.5, 0.5, 1.0, 0.5], room=room, ratio=ratio)
    assert begins(placer, values) == [expected]


def test_what_is_overtaken_needs_room_too() -> None:
    values = [value(1, 5), value(4, 1)]
    placer = placed(values, [1.0] * 6, room=4)
    assert begins(placer, values) == [4, None]
    assert placer.heap.remaining() == [4, 4, 4, 4, 3, 3]
    assert placer.idle == [1, 1, 1, 1, 0, 1]


def test_bandwidth_is_used_from_the_use_on_backwards() -> None:
    placer = placed([value(2, 3)], [1.0, 0.75, 1.0, 1.0])
    assert placer.idle == [0.75, 0, 0, 1]


VALUES = st.lists(
    st.tuples(st.integers(1, 6), st.lists(st.integers(0, 5), min_size=1, max_size=2).map(sorted)),
    max_size=7,
)


@given(VALUES, st.integers(4, 24), st.sampled_from([0.3, 0.7, 1.0]), st.booleans())
def test_prefetches_share_nothing_and_keep_the_order_of_their_uses(
    described: list[tuple[int, list[int]]], room: int, ratio: float, pipelined: bool
) -> None:
    idle = [1.0, 0.0, 2.0, 0.5, 1.0, 1.0]
    values = [value(size, *uses) for size, uses in described]
    placer = placed(values, idle, room=room, ratio=ratio, pipelined=pipelined)
    taken: set[tuple[int, int]] = set()
    runs = []
    for prefetch in placer.placed:
        chunk = prefetch.allocation
        assert (chunk.end, chunk.size) == (prefetch.value.last_use, prefetch.value.size)
        assert prefetch.value.last_use - 6 <= prefetch.begin <= prefetch.value.first_use
        for iteration in range(4):
            first = iteration * 6
            for time in range(first + chunk.begin, first + chunk.end + 1):
                low = chunk.offsets[iteration % 2]
                assert low + chunk.size <= room
                own = {(time, byte) for byte in range(low, low + chunk.size)}
                assert taken.isdisjoint(own)
                taken |= own
            runs.append((first + prefetch.start_after, first + prefetch.value.first_use))
    for one, other in combinations(runs, 2):
        assert not (one[0] < other[0] and other[1] < one[1])
        assert not (other[0] < one[0] and one[1] < other[1])
    assert all(0 <= left <= had for left, had in zip(placer.idle, idle, strict=True))
