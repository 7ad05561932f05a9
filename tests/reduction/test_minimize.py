"""Delta debugging: all parts go that can, in few attempts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest

from hloopt.reduction.minimize import remove_parts


class Pool:
    """Parts of which some have to stay; with one that goes, its companion goes, too."""

    def __init__(self, count: int, needed: set[int]) -> None:
        self.left = list(range(count))
        self.needed = needed
        self.attempts = 0

    def parts(self) -> Sequence[Hashable]:
        return self.left

    def attempt(self, groups: Sequence[Sequence[Hashable]]) -> int | None:
        for number, group in enumerate(groups):
            self.attempts += 1
            if self.needed.isdisjoint(group):
                self.left = [part for part in self.left if part not in group]
                return number
        return None


@pytest.mark.parametrize("needed", [set(), {0}, {99}, {3, 50}, {10, 11, 12}, set(range(0, 100, 9))])
def test_only_what_is_needed_stays(needed: set[int]) -> None:
    pool = Pool(100, needed)
    assert remove_parts(pool.parts, pool.attempt) is (len(needed) < 100)
    assert {*pool.left} == needed


def test_few_parts_among_many_take_a_logarithm_of_attempts() -> None:
    pool = Pool(8_000, {17, 2_345, 7_900})
    remove_parts(pool.parts, pool.attempt)
    assert {*pool.left} == pool.needed
    assert pool.attempts < 2 * len(pool.needed) * (8_000).bit_length()


def test_one_by_one_starts_anew_after_each() -> None:
    pool = Pool(5, {2})
    assert remove_parts(pool.parts, pool.attempt, one_by_one=True)
    assert pool.left == [2]


def test_nothing_to_remove() -> None:
    for one_by_one in (False, True):
        assert not remove_parts(list, lambda groups: 0 if groups else None, one_by_one=one_by_one)
