"""The place where temporaries are placed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.modules import assign, name_of, offsets

from hloopt.memory.heap import packing as heap_packing
from hloopt.memory.heap.address_space import AddressSpace
from hloopt.memory.heap.chunk_table import ChunkTable
from hloopt.memory.heap.events import Event, EventKind, HeapTrace
from hloopt.memory.heap.packing import pack

ALIGNMENT = 64


def call(name: str, size: int, *operands: str) -> str:
    target = 'custom_call_target="f"'
    return f"{name} = s8[{size}] custom-call({', '.join(operands)}), {target}"


def events(*lines: str) -> list[str]:
    assignment = assign(*lines)
    return [
        f"{event.kind} {name_of(assignment, event.value)}"
        + (f" with {name_of(assignment, event.canonical)}" if event.kind == "share" else "")
        for event in assignment.traces[0].events
    ]


def test_a_value_is_allocated_where_it_starts_and_freed_where_it_ends() -> None:
    lines = ("a = s8[8] parameter(0)", call("b", 100, "a"), call("c", 50, "b"), call("r", 8, "c"))
    assert events(*lines) == ["alloc b", "alloc c", "free b", "free c"]


def test_an_elementwise_result_takes_over_an_operand_that_ends() -> None:
    lines = (
        *("a = s8[8] parameter(0)", call("b", 100, "a"), "c = s8[100] negate(b)"),
        call("r", 8, "c"),
    )
    assert events(*lines) == ["alloc b", "free b", "share c with b", "free c"]


def test_values_of_one_buffer_share() -> None:
    lines = (
        *("a = s8[8] parameter(0)", "i = s32[] parameter(1)", call("b", 100, "a")),
        *("c = s8[100] dynamic-update-slice(b, a, i)", call("r", 8, "c")),
    )
    assert events(*lines) == ["alloc b", "share c with b", "free b", "free c"]


def test_the_heap_is_aligned_inside_and_not_at_its_end() -> None:
    lines = ("a = s8[8] parameter(0)", call("b", 10, "a"), call("c", 20, "b"), call("r", 8, "c"))
    assignment = assign(*lines)
    assert offsets(assignment) == {"c": 0, "b": 64}
    assert assignment.allocations[-1].size == 74


def test_a_gap_is_filled_that_fits_best() -> None:
    lines = (
        "p = s8[8] parameter(0)",
        call("a", 640, "p"),
        call("b", 512, "a"),
        call("c", 320, "b"),
        call("d", 256, "b", "c"),
        call("r", 8, "c", "d"),
    )
    assert offsets(assign(*lines)) == {"a": 0, "b": 640, "c": 0, "d": 320}


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(1, 60), st.integers(0, 40), st.integers(0, 40)),
        max_size=30,
    ),
    st.tuples(st.integers(0, 40), st.integers(0, 40)),
)
def test_an_address_space_knows_what_is_taken_when(
    taken: list[tuple[int, int, int, int]], asked: tuple[int, int]
) -> None:
    space = AddressSpace(41)
    expected: set[int] = set()
    first, last = sorted(asked)
    for address, size, one, other in taken:
        start, end = sorted((one, other))
        space.take(address, address + size, (start, end))
        if start <= last and first <= end:
            expected |= set(range(address, address + size))
    ranges = space.taken([(first, last)])
    assert {a for start, end in ranges for a in range(start, end)} == expected
    assert ranges == sorted(ranges)


intervals = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: tuple(sorted(pair)))


@given(st.lists(st.tuples(st.integers(1, 1000), intervals), min_size=1, max_size=25))
def test_values_that_meet_lie_apart(values: list[tuple[int, tuple[int, int]]]) -> None:
    trace = HeapTrace()
    for value, (size, (start, end)) in enumerate(values):
        trace.root[value], trace.size[value] = value, size
        trace.first_tick[value], trace.last_tick[value] = start, end
        trace.events.append(Event(EventKind.ALLOC, value, start, value))
    packing = pack(trace, ALIGNMENT)
    for value, (size, (start, end)) in enumerate(values):
        offset = packing.offsets[value]
        assert offset % ALIGNMENT == 0
        assert offset + size <= packing.size
        for other, (other_size, (other_start, other_end)) in enumerate(values[:value]):
            if start <= other_end and other_start <= end:
                lower = packing.offsets[other]
                assert offset + size <= lower or lower + other_size <= offset
    live = max(
        sum(size for size, (start, end) in values if start <= tick <= end) for tick in range(61)
    )
    assert live <= packing.size


def trace_of(values: list[tuple[int, list[tuple[int, int]]]]) -> HeapTrace:
    """Values of these sizes, each with others at its place that are taken at these intervals."""
    trace = HeapTrace()
    for size, spans in values:
        root = len(trace.root)
        for start, end in spans:
            value = len(trace.root)
            trace.root[value], trace.size[value] = root, size
            trace.first_tick[value], trace.last_tick[value] = start, end
    return trace


sized_spans = st.tuples(st.integers(1, 1000), st.lists(intervals, min_size=1, max_size=3))


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10), intervals), min_size=1, max_size=40),
    st.lists(intervals, min_size=1, max_size=3),
    st.integers(1, 12),
)
def test_a_table_answers_as_the_tree_does(
    taken: list[tuple[int, int, tuple[int, int]]], asked: list[tuple[int, int]], wanted: int
) -> None:
    tree, table = AddressSpace(61), ChunkTable()
    for start, size, interval in taken:
        for space in (tree, table):
            space.take(start, start + size, interval)
    assert table.best_gap(asked, wanted) == tree.best_gap(asked, wanted)


@pytest.mark.parametrize("kind", ["tree", "table"])
@pytest.mark.parametrize(
    ("wanted", "offset"), [(1, 16), (4, 16), (5, 30), (6, 30), (7, 50), (8, 50), (9, 0), (11, 70)]
)
def test_the_shortest_gap_that_is_long_enough_is_found(kind: str, wanted: int, offset: int) -> None:
    """Gaps of 10, 4, 6, 6 and 8 bytes at 0, 16, 30, 40 and 50; at another time there is none."""
    space = AddressSpace(4) if kind == "tree" else ChunkTable()
    taken = [(10, 16, (1, 1)), (20, 30, (0, 2)), (36, 40, (1, 3)), (46, 50, (1, 1))]
    for start, end, interval in [*taken, (58, 70, (0, 1)), (0, 70, (3, 3))]:
        space.take(start, end, interval)
    assert space.best_gap([(1, 1), (2, 2)], wanted) == offset


@given(st.lists(sized_spans, min_size=1, max_size=25))
def test_packing_does_not_depend_on_how_gaps_are_found(
    values: list[tuple[int, list[tuple[int, int]]]],
) -> None:
    trace = trace_of(values)
    found = pack(trace, ALIGNMENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heap_packing, "_WINDOW", 3)
        patch.setattr(heap_packing, "_RANGES", 0)
        assert pack(trace, ALIGNMENT) == found


def test_many_values_at_one_time_are_packed_in_a_table() -> None:
    chance = random.Random(1)
    values = []
    for number in range(3000):
        span = 2 * number, 2 * number + 1 + 2 * chance.randrange(1, 1500)
        values.append((chance.randrange(1, 1 << 20), [span]))
    trace = trace_of(values)
    answer, asked = ChunkTable.best_gap, []

    def best_gap(table: ChunkTable, intervals: list[tuple[int, int]], wanted: int) -> int:
        asked.append(wanted)
        return answer(table, intervals, wanted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChunkTable, "best_gap", best_gap)
        patch.setattr(heap_packing, "_RANGES", 1 << 30)
        plain = pack(trace, ALIGNMENT)
        assert not asked
        patch.setattr(heap_packing, "_RANGES", 100)
        assert pack(trace, ALIGNMENT) == plain
        assert len(asked) > 3000
