"""Room in allocations: when a value may move in, and which kinds take none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.modules import LOOP_CONDITION, allocations, assign

from hloopt.memory.allocations import Allocation, AllocationKind, Occupation, ParameterPart
from hloopt.memory.analysis import MemoryAnalysis

ARGUMENT = ParameterPart(0, ())


@pytest.mark.parametrize(
    ("allocation", "kind", "is_reusable"),
    [
        (Allocation(4, 0), AllocationKind.TEMPORARY, True),
        (Allocation(4, 0, is_live_out=True), AllocationKind.OUTPUT, True),
        (Allocation(4, 0, is_live_out=True, is_tuple=True), AllocationKind.OUTPUT, False),
        (Allocation(4, 0, is_tuple=True), AllocationKind.TEMPORARY, False),
        (Allocation(4, 0, parameter=ARGUMENT), AllocationKind.PARAMETER, False),
        (Allocation(4, 0, parameter=ARGUMENT, is_live_out=True), AllocationKind.PARAMETER, False),
        (Allocation(4, 0, parameter=ARGUMENT, is_aliased=True), AllocationKind.PARAMETER, True),
        (Allocation(4, 0, is_constant=True), AllocationKind.CONSTANT, False),
        (Allocation(4, 0, is_constant=True, is_live_out=True), AllocationKind.CONSTANT, False),
        (Allocation(4, 0, is_thread_local=True), AllocationKind.THREAD_LOCAL, False),
    ],
)
def test_kinds_of_allocations(
    allocation: Allocation, kind: AllocationKind, is_reusable: bool
) -> None:
    assert (allocation.kind, allocation.is_reusable) == (kind, is_reusable)


# -- when an allocation is in use -----------------------------------------------------------------


@st.composite
def touching_ranges(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Ranges in order, of which neighbours at most touch."""
    steps = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8))
    ranges, time = [], 0
    for gap, length in steps:
        ranges.append((time + gap, time + gap + length))
        time += gap + length
    return ranges


def occupied(ranges: list[tuple[int, int]], order: list[int]) -> Occupation:
    result = Occupation(Allocation(4, 0))
    for number in order:
        result.add(*ranges[number], number)
    return result


@given(touching_ranges(), st.data())
def test_ranges_are_found_by_what_they_overlap_or_touch(
    ranges: list[tuple[int, int]], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(ranges))))
    start, end = sorted(data.draw(st.tuples(st.integers(0, 30), st.integers(0, 30))))
    found = occupied(ranges, order)
    held = list(zip(found.starts, found.ends, found.values, strict=True))
    assert [(first, last) for first, last, _ in held] == ranges
    assert all(ranges[value] == (first, last) for first, last, value in held)
    assert [held[number][:2] for number in found.touching(start, end)] == [
        (first, last) for first, last in ranges if first <= end and start <= last
    ]
    assert found.is_in_use(start, end) == any(
        first < end and start < last for first, last in ranges
    )


@given(touching_ranges(), st.integers(0, 5))
def test_the_widest_gap_is_that_between_two_ranges_or_at_an_end(
    ranges: list[tuple[int, int]], rest: int
) -> None:
    length = max((end for _, end in ranges), default=0) + rest
    found = occupied(ranges, list(range(len(ranges))))
    assert found.widest == float("inf")
    found.measure(length)
    bounds = [0, *(time for both in ranges for time in both), length]
    assert found.widest == max(bounds[i + 1] - bounds[i] for i in range(0, len(bounds), 2))


@pytest.mark.parametrize(("count", "widest"), [(32, 1), (33, float("inf"))])
def test_of_many_ranges_the_widest_gap_is_not_known(count: int, widest: float) -> None:
    found = occupied([(2 * n, 2 * n + 1) for n in range(count)], list(range(count)))
    found.measure(2 * count)
    assert found.widest == widest


# -- what moves in --------------------------------------------------------------------------------


def test_temporaries_lie_in_a_donated_argument_until_its_output_is_written() -> None:
    lines = (
        "a = f32[100] parameter(0)",
        "b = f32[100] reverse(a), dimensions={0}",
        "c = f32[100] reverse(b), dimensions={0}",
        "d = f32[50] slice(c), slice={[0:50]}",
        "k = f32[] constant(0)",
        "e = f32[100] pad(d, k), padding=0_50",
        "t = (f32[100]) tuple(e)",
    )
    header = "is_scheduled=true, input_output_alias={ {0}: (0, {}) }"
    assert allocations(assign(*lines, header=header)) == [
        ("parameter", 400, ["a", "c", "e"]),
        ("output", 8, ["t"]),
        ("constant", 4, ["k"]),
        ("temporary", 400, ["b", "d"]),
    ]


def test_a_temporary_fits_exactly_before_the_output() -> None:
    found = allocations(
        assign(
            "i = f32[100] iota(), iota_dimension=0",
            "j = f32[100] reverse(i), dimensions={0}",
            "o = f32[100] add(j, i)",
        )
    )
    assert found == [("output", 400, ["i", "o"]), ("temporary", 400, ["j"])]


def outputs(*lines: str) -> list[list[str]]:
    return [names for kind, _, names in allocations(assign(*lines)) if kind == "output"]


def test_an_output_is_not_written_over_one_that_is_read_for_it() -> None:
    found = outputs(
        "a = f32[100] parameter(0)",
        "x = f32[100] sine(a)",
        "y = f32[100] negate(x)",
        "t = (f32[100], f32[100]) tuple(x, y)",
    )
    assert sorted(found) == [["t"], ["x"], ["y"]]


TWO_OUTPUTS = (
    "k = f32[] constant(0)",
    "o = f32[100] pad(d, k), padding=0_75",
    "q = f32[100] reverse(o), dimensions={0}",
    "t = (f32[100], f32[100]) tuple(o, q)",
)


def test_of_several_allocations_with_room_the_newest_is_taken() -> None:
    found = outputs(
        "a = f32[100] parameter(0)",
        "b = f32[50] slice(a), slice={[0:50]}",
        "d = f32[25] slice(b), slice={[0:25]}",
        *TWO_OUTPUTS,
    )
    assert found == [["o"], ["b", "q"], ["t"]]


def test_a_result_stays_in_the_place_of_the_operand_that_it_overwrites() -> None:
    """`e` has the newer place while `x` begins, which is free again when `y` does."""
    found = outputs(
        "a = f32[100] parameter(0)",
        "e = f32[100] reverse(a), dimensions={0}",
        "x = f32[100] reverse(e), dimensions={0}",
        "y = f32[100] negate(x)",
        "d = f32[25] slice(y), slice={[0:25]}",
        *TWO_OUTPUTS,
    )
    assert found == [["x", "y", "o"], ["e", "d", "q"], ["t"]]


def test_a_result_does_not_overwrite_an_operand_that_is_read_again() -> None:
    found = allocations(
        assign(
            "a = f32[100] parameter(0)",
            "k = f32[] constant(0)",
            "x = f32[100] reverse(a), dimensions={0}",
            "y = f32[100] negate(x)",
            "b = f32[50] slice(x), slice={[0:50]}",
            "c = f32[50] slice(y), slice={[0:50]}",
            "d = f32[50] add(b, c)",
            "o = f32[100] pad(d, k), padding=0_50",
        )
    )
    assert ("output", 400, ["x", "c", "o"]) in found
    assert ("temporary", 648, ["b", "y", "d"]) in found


def test_the_state_of_a_loop_lies_in_the_argument_that_is_donated() -> None:
    body = """
body { q = (s32[], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[100] get-tuple-element(q), index=1
  next = s32[] negate(j)
  v = f32[100] sine(x)
  ROOT r = (s32[], f32[100]) tuple(next, v) }"""
    assignment = assign(
        "a = (s32[], f32[100]) parameter(0)",
        "w = (s32[], f32[100]) while(a), condition=cond, body=body",
        header="is_scheduled=true, input_output_alias={ {0}: (0, {0}), {1}: (0, {1}) }",
        before=LOOP_CONDITION + body,
    )
    assert allocations(assignment) == [
        ("parameter", 400, ["v", "a.1", "p.1?", "q.1?", "w.1?"]),
        ("parameter", 16, ["r", "a", "p?", "q?", "w?"]),
        ("parameter", 4, ["next", "a.0", "p.0?", "q.0?", "w.0?"]),
        ("constant", 4, ["n"]),
        ("temporary", 1, ["less"]),
    ]
    holds = [a.holds for a in MemoryAnalysis(assignment, None).report().allocations]
    assert holds == ["a{1}", "a", "a{0}", "n", "less"]


def test_a_constant_that_is_updated_in_thread_local_memory_stays_a_constant() -> None:
    called = """f { x = f32[2] parameter(0)
  k = f32[2] constant({1, 2})
  i = s32[] constant(0)
  d = f32[2] dynamic-update-slice(k, x, i)
  ROOT n = f32[2] negate(d) }
"""
    call = 'n.1 = f32[2] custom-call(a), custom_call_target="f", called_computations={f}'
    found = allocations(assign("a = f32[2] parameter(0)", call, before=called))
    inside = [(kind, names) for kind, _, names in found if names[0] not in ("a", "n.1")]
    assert sorted(inside) == [
        ("constant", ["i"]),
        ("constant", ["k", "d"]),
        ("thread-local", ["n"]),
        ("thread-local", ["x"]),
    ]
