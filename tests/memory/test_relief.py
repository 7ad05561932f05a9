"""Steps that lower a peak: the cheapest at it first, and only what helps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hloopt.memory.advice import relief
from hloopt.memory.advice.gaps import Gap, Place
from hloopt.memory.advice.relief import Relief, Step
from hloopt.memory.allocations import AllocationKind


def place(size: int) -> Place:
    return Place([0], size, AllocationKind.TEMPORARY, is_live_out=False)


def step(
    where: Place,
    gap: tuple[int, int],
    price: float = 1,
    extra: int = 0,
    needs: tuple[Place, ...] = (),
) -> Step:
    return Step(where, Gap(0, *gap), price, extra, needs)


def lowered(timeline: list[int], goal: int, *steps: Step) -> tuple[list[int], int, list[Step]]:
    """The timeline, its peak and the steps taken; a step is offered in its gap."""
    result = Relief(list(timeline))

    def offers(position: int) -> Iterator[Step]:
        return (s for s in steps if s.gap.before < position < s.gap.after)

    result.lower(offers, goal)
    assert result.peak == max(result.timeline, default=0)
    return result.timeline, result.peak, result.steps


def test_memory_is_given_up_between_the_two_accesses() -> None:
    only = step(place(4), (1, 4))
    assert lowered([5, 7, 9, 8, 6], 0, only) == ([5, 7, 5, 4, 6], 7, [only])


def test_the_cheapest_step_at_the_peak_is_taken_first() -> None:
    dear, cheap = step(place(4), (0, 3), price=2), step(place(3), (0, 3), price=1)
    assert lowered([5, 9, 9, 1], 6, dear, cheap) == ([5, 6, 6, 1], 6, [cheap])
    assert lowered([5, 9, 9, 1], 5, dear, cheap) == ([5, 2, 2, 1], 5, [cheap, dear])


def test_of_equal_steps_the_first_is_taken() -> None:
    one, other = step(place(4), (0, 2)), step(place(3), (0, 2))
    assert lowered([5, 9, 5], 6, one, other)[2] == [one]


@pytest.mark.parametrize(("goal", "taken"), [(9, 0), (8, 1), (10, 0)])
def test_a_peak_at_the_goal_is_low_enough(goal: int, taken: int) -> None:
    assert len(lowered([5, 9, 5], goal, step(place(4), (0, 2)))[2]) == taken


def test_the_first_of_equal_peaks_is_looked_at() -> None:
    first, second = step(place(4), (0, 2)), step(place(4), (2, 4))
    assert lowered([1, 9, 1, 9, 1], 5, second, first) == ([1, 5, 1, 5, 1], 5, [first, second])


def test_steps_that_lower_no_peak_are_taken_back() -> None:
    timeline = [1, 9, 1, 9, 1]
    steps = step(place(4), (0, 2)), step(place(3), (2, 4))
    assert lowered(timeline, 5, steps[0]) == (timeline, 9, [])
    assert lowered([*timeline, 9], 5, *steps) == ([*timeline, 9], 9, [])


def test_what_was_taken_since_the_peak_was_last_lowered_is_taken_back() -> None:
    useful, useless = step(place(2), (0, 4)), step(place(3), (0, 2), price=2, extra=1)
    timeline = [1, 9, 3, 9, 1]
    assert lowered(timeline, 5, useful, useless) == ([1, 7, 1, 7, 1], 7, [useful])


def test_a_gap_is_given_up_once() -> None:
    here = place(1)
    assert len(lowered([5, 9, 5], 6, step(here, (0, 2)), step(here, (0, 2)))[2]) == 1
    assert len(lowered([5, 9, 5], 6, step(here, (0, 2)), step(place(1), (0, 2)))[2]) == 2


@pytest.mark.parametrize(("extra", "number"), [(3, 0), (4, 1), (5, 1)])
def test_bytes_beside_a_result_must_fit_below_the_peak(extra: int, number: int) -> None:
    steps = step(place(4), (0, 3), extra=extra), step(place(4), (0, 3), price=2)
    assert lowered([1, 9, 1, 5], 8, *steps)[2] == [steps[number]]


def test_extra_bytes_are_in_use_where_the_gap_ends() -> None:
    only = step(place(4), (0, 2), extra=3)
    assert lowered([1, 9, 2, 2], 4, only) == ([1, 5, 5, 2], 5, [only])


@pytest.mark.parametrize(("at", "is_taken"), [(1, True), (2, False), (3, False), (4, True)])
def test_what_a_step_reads_later_is_not_given_up_there(at: int, is_taken: bool) -> None:
    """The first step needs `other` at the end of its gap, which the second would give up."""
    other = place(2)
    first = step(place(4), (-1, at), needs=(other,))
    second = step(other, (1, 4), price=2)
    timeline = [9, 5, 8, 10 if at == 4 else 8, 2]
    taken = lowered(timeline, 0, first, second)[2]
    assert (second in taken) is is_taken


@pytest.mark.parametrize(("at", "is_taken"), [(1, True), (2, False), (3, False), (4, True)])
def test_a_step_does_not_read_what_was_given_up(at: int, is_taken: bool) -> None:
    other = place(2)
    first = step(other, (1, 4))
    second = step(place(4), (-1, at), price=2, needs=(place(1), other))
    taken = lowered([9, 4, 10, 10, 0], 0, first, second)[2]
    assert taken == ([first, second] if is_taken else [first])


def test_at_most_so_many_steps_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [step(place(1), (-1, 4), price=number) for number in range(5)]
    monkeypatch.setattr(relief, "_MOST_STEPS", 3)
    assert lowered([9, 9, 9, 9], 0, *steps)[2] == steps[:3]
    monkeypatch.setattr(relief, "_WORK", 9)  # positions: one step, and one more per 5 of them
    assert lowered([9, 9, 9, 9], 0, *steps)[2] == steps[:2]
    monkeypatch.setattr(relief, "_WORK", 10)
    assert lowered([9, 9, 9, 9], 0, *steps)[2] == steps[:3]


def test_nothing_is_done_where_there_is_nothing() -> None:
    assert lowered([], 0) == ([], 0, [])
