"""The time that instructions leave for asynchronous copies."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.memory_space.ledger.copy_resource import CopyResource

Copy = tuple[int, int, int]


def resource(seconds: Sequence[float], *copies: tuple[int, int, float]) -> CopyResource:
    """Times and copies; the keys of the copies are their numbers."""
    made = CopyResource(seconds)
    for number, copy in enumerate(copies):
        made.add(*copy, number)
    return made


def test_a_copy_takes_the_first_free_times_strictly_inside() -> None:
    assert resource([2, 2, 2, 2], (0, 4, 3)).free() == [2, 0, 1, 2]
    assert resource([2, 2, 2, 2], (-1, 4, 3)).free() == [0, 1, 2, 2]


@pytest.mark.parametrize(
    ("copy", "fits"),
    [
        ((0, 3, 4), True),
        ((0, 3, 5), False),
        ((0, 9, 6), True),  # times past the last one have nothing
        ((0, 9, 7), False),
        ((1, 2, 1), False),
        ((2, 2, 1), False),
        ((3, 1, 1), False),
        ((7, 9, 1), False),
        ((3, 1, 0), True),  # a copy that needs nothing ends wherever it has to
        ((7, 9, 0), True),
    ],
)
def test_a_copy_has_only_the_times_strictly_inside(copy: Copy, fits: bool) -> None:
    made = resource([2, 2, 2, 2])
    assert made.has_enough(*copy) is fits
    assert made.has_enough_together([copy]) is fits
    assert made.free() == [2, 2, 2, 2]


def test_a_new_copy_pushes_later_ones_only_as_far_as_they_still_end_in_time() -> None:
    made = resource([2] * 6, (2, 5, 2))
    assert made.has_enough(1, 4, 4)
    assert not resource([2] * 6, (2, 4, 2)).has_enough(1, 4, 4)
    made.add(1, 4, 4, "first")
    assert made.free() == [2, 2, 0, 0, 0, 2]


def test_a_copy_with_an_equal_start_waits_for_those_before() -> None:
    made = resource([2] * 4, (0, 4, 4))
    assert not made.has_enough(0, 3, 2)
    assert made.has_enough(0, 4, 2)
    made.add(0, 4, 2, "b")
    made.remove(0)
    assert made.has_enough(0, 3, 2)  # it has moved to the front


def test_a_copy_waits_for_earlier_starts_and_for_equal_ones() -> None:
    made = resource([2] * 6, (-1, 6, 8), (1, 6, 2))
    assert made.has_enough(1, 6, 2)
    assert not made.has_enough(1, 5, 2)


def test_a_copy_is_pushed_by_all_that_waits_where_it_starts() -> None:
    made = resource([0, 1, 2, 1], (0, 4, 2), (1, 3, 1))
    assert not made.has_enough(0, 4, 1)
    assert resource([0, 1, 2, 1], (0, 4, 2), (1, 4, 1)).has_enough(0, 4, 1)


def test_a_push_goes_on_through_the_copies_pushed() -> None:
    made = resource([1] * 6, (0, 3, 1), (1, 4, 1), (2, 5, 1))
    assert made.has_enough(-1, 6, 2)
    assert not made.has_enough(-1, 6, 3)
    assert not resource([1] * 6, (0, 3, 1), (1, 4, 1), (2, 4, 1)).has_enough(-1, 2, 2)


def test_copies_together_are_refused_for_any_of_them_and_leave_no_trace() -> None:
    made = resource([2] * 4)
    assert made.has_enough_together([])
    assert made.has_enough_together([(0, 2, 2), (1, 4, 4)])
    assert not made.has_enough_together([(0, 2, 2), (0, 2, 2)])
    assert not made.has_enough_together([(0, 4, 4), (0, 2, 1)])
    assert not made.has_enough_together([(1, 3, 2), (0, 4, 4)])  # the second pushes the first
    assert made.free() == [2, 2, 2, 2]


def test_equal_sums_compare_equal() -> None:
    made = resource([0, 0.1, 0.2], (0, 3, 0.3))
    assert made.free() == [0, 0, 0]
    made.remove(0)
    assert made.has_enough_together([(0, 3, 0.1), (0, 3, 0.2)])
    tiny = resource([8.71333e-09] * 3, (-1, 3, 2.5e-09))
    tiny.remove(0)
    assert tiny.has_enough_together([(-1, 3, 8.71333e-09)] * 3)


def test_a_key_may_be_used_again_and_one_that_is_not_used_is_an_error() -> None:
    made = resource([1, 1], (-1, 2, 1))
    made.remove(0)
    with pytest.raises(KeyError):
        made.remove(0)
    made.add(-1, 2, 0, 0)
    made.remove(0)
    assert made.free() == [1, 1]


def laid_out(seconds: list[int], copies: Sequence[Copy]) -> list[int] | None:
    """What is left per time when all copies are laid out by start; None if one does not fit."""
    free = list(seconds)
    for start, end, left in sorted(copies, key=lambda copy: copy[0]):
        for time in range(start + 1, min(end, len(free))):
            used = min(left, free[time])
            free[time] -= used
            left -= used
        if left:
            return None
    return free


SECONDS = st.lists(st.sampled_from([0, 0, 1, 2, 5]), max_size=12)
COPIES = st.tuples(st.integers(-1, 13), st.integers(-1, 14), st.integers(0, 6))


@given(SECONDS, st.lists(st.tuples(COPIES, st.integers(0, 40)), max_size=30))
def test_as_laying_out_all_copies_anew(seconds: list[int], steps: list[tuple[Copy, int]]) -> None:
    made = CopyResource(seconds)
    copies: dict[Hashable, Copy] = {}
    for number, (copy, choice) in enumerate(steps):
        expected = laid_out(seconds, [*copies.values(), copy])
        assert made.has_enough(*copy) is (expected is not None)
        if choice % 4 == 0 and copies:
            key = list(copies)[choice // 4 % len(copies)]
            del copies[key]
            made.remove(key)
        elif expected is not None:
            copies[number] = copy
            made.add(*copy, number)
        assert made.free() == laid_out(seconds, list(copies.values()))


@given(SECONDS, st.lists(COPIES, max_size=6), st.lists(COPIES, max_size=4))
def test_together_as_laying_out_all_copies_anew(
    seconds: list[int], before: list[Copy], together: list[Copy]
) -> None:
    made = CopyResource(seconds)
    copies: list[Copy] = []
    for copy in before:
        if made.has_enough(*copy):
            made.add(*copy, len(copies))
            copies.append(copy)
    expected = laid_out(seconds, [*copies, *together])
    assert made.has_enough_together(together) is (expected is not None)
    assert made.free() == laid_out(seconds, copies)
