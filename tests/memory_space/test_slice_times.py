"""The start times of the slices of a prefetch."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.memory_space.costs.slice_times import pick_slice_starts, slice_time_permutations


def starts(
    seconds: list[float], slices: int, start: int, end: int, computations: str = ""
) -> list[int]:
    own = computations[max(start, 0)] if computations else ""
    return pick_slice_starts(
        *(slices, start, end),
        lambda first, last: sum(seconds[first + 1 : last]),
        lambda time: not computations or computations[time] == own,
    )


@pytest.mark.parametrize(
    ("seconds", "slices", "start", "end", "expected"),
    [
        ([1, 1, 1], 2, -1, 3, [-1, 0]),
        ([1, 1, 1], 1, -1, 3, [-1]),
        ([0, 0, 0], 2, -1, 3, [-1, -1]),
        ([1, 1, 1], 2, 0, 2, [0, 0]),  # a copy that starts at 0 has no time
        ([1, 1, 1], 2, 0, 3, [0, 1]),
        ([1, 1, 1], 2, 2, 1, [2, 2]),
        ([1, 1, 1, 1], 2, -1, 4, [-1, 1]),  # exactly half is left after it
        ([5, 1, 1, 1], 2, -1, 4, [-1, -1]),  # the half is over before any other start
        ([1, 1, 1, 5], 2, -1, 4, [-1, 2]),  # no start leaves too little
        ([1, 9, 1, 1], 4, -1, 4, [-1, 0, 0, 0]),  # one long instruction
        ([1, 0, 0, 0, 1], 2, -1, 5, [-1, 0]),  # a start that skips no time is not taken
        ([1, 1, 0, 0, 0, 9], 3, -1, 6, [-1, 1, 1]),
    ],
)
def test_starts_are_where_equal_shares_of_the_time_have_passed(
    seconds: list[float], slices: int, start: int, end: int, expected: list[int]
) -> None:
    assert starts(seconds, slices, start, end) == expected


@pytest.mark.parametrize(
    ("computations", "expected"),
    [
        ("aaaaaa", [-1, 2]),
        ("aabbaa", [-1, 1]),
        ("abbbaa", [-1, 0]),
        ("aaabba", [-1, 2]),
        ("baaaaa", [-1, 0]),  # the prefetch starts before the first time, in its computation
    ],
)
def test_slices_start_in_the_computation_of_the_first_one(
    computations: str, expected: list[int]
) -> None:
    assert starts([1] * 6, 2, -1, 6, computations) == expected


def test_time_spent_in_another_computation_is_skipped_time() -> None:
    assert starts([1, 2, 0, 4, 4], 2, 0, 5, "abaaa") == [0, 2]


def test_starts_that_no_candidate_decides_are_the_last_candidate() -> None:
    assert starts([1, 1, 1, 100], 3, -1, 4) == [-1, 2, 2]


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    *(st.integers(1, 5), st.integers(-1, 11), st.integers(0, 12)),
)
def test_starts_ascend_and_leave_room(
    seconds: list[float], slices: int, start: int, end: int
) -> None:
    start, end = min(start, len(seconds) - 1), min(end, len(seconds))
    found = starts(seconds, slices, start, end)
    assert found == sorted(found)
    assert len(found) == slices
    assert found[0] == start
    assert found[-1] in (start, *range(start, end - 1))


@pytest.mark.parametrize(
    ("times", "every", "expected"),
    [
        ([3, 1, 2], False, [(1, 2, 3), (3, 2, 1)]),
        ([1, 1, 2], True, [(1, 1, 2), (1, 2, 1), (2, 1, 1)]),
        ([1, 1], False, [(1, 1)]),
        ([1, 1], True, [(1, 1)]),
        ([5], False, [(5,)]),
        ([], False, [()]),
        ([], True, [()]),
    ],
)
def test_orders_of_start_times(
    times: list[int], every: bool, expected: list[tuple[int, ...]]
) -> None:
    assert list(slice_time_permutations(times, every=every)) == expected


@given(st.lists(st.integers(0, 4), max_size=5))
def test_every_order_comes_once(times: list[int]) -> None:
    assert list(slice_time_permutations(times, every=True)) == sorted(set(permutations(times)))
