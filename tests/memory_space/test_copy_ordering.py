"""The order of asynchronous copies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.memory_space.ledger.copy_ordering import CopyOrdering


@pytest.mark.parametrize(
    ("copy", "violates"),
    [
        ((2, 9), True),  # inside
        ((0, 11), True),  # around
        ((2, 10), False),
        ((1, 9), False),
        ((1, 11), False),
        ((0, 10), False),
        ((1, 10), False),
        ((-1, 9), False),
        ((2, 11), False),
        ((40, 50), False),
        ((40, 9), True),
    ],
)
def test_a_copy_inside_another_or_around_it_violates_the_order(
    copy: tuple[int, int], violates: bool
) -> None:
    ordering = CopyOrdering()
    assert not ordering.violates(*copy)
    ordering.add(1, 10, "a")
    assert ordering.violates(*copy) is violates


def test_equal_copies_are_removed_one_by_one() -> None:
    ordering = CopyOrdering()
    for key in "abc":
        ordering.add(-1, 5, key)
    for key in "bca":
        assert ordering.violates(0, 4)
        ordering.remove(key)
    assert not ordering.violates(0, 4)


def test_a_key_may_be_used_again_and_one_that_is_not_used_is_an_error() -> None:
    ordering = CopyOrdering()
    ordering.add(1, 10, "a")
    ordering.remove("a")
    with pytest.raises(KeyError):
        ordering.remove("a")
    ordering.add(3, 4, "a")
    assert ordering.violates(2, 5)
    assert not ordering.violates(2, 3)


INTERVALS = st.tuples(st.integers(-1, 20), st.integers(0, 12)).map(lambda p: (p[0], sum(p)))


@given(st.lists(st.tuples(INTERVALS, st.booleans(), st.integers(0, 30)), max_size=40), INTERVALS)
def test_as_a_look_at_all_copies(
    steps: list[tuple[tuple[int, int], bool, int]], asked: tuple[int, int]
) -> None:
    ordering = CopyOrdering()
    copies: dict[int, tuple[int, int]] = {}
    for number, (copy, removes, choice) in enumerate(steps):
        if removes and copies:
            key = list(copies)[choice % len(copies)]
            del copies[key]
            ordering.remove(key)
        else:
            copies[number] = copy
            ordering.add(*copy, number)
        for start, end in (asked, copy):
            expected = any((start - s) * (end - e) < 0 for s, e in copies.values())
            assert ordering.violates(start, end) is expected
