"""The time or the number of steps that a search may take."""

from __future__ import annotations

import pytest

from hloopt import search_budget
from hloopt.options import Seconds
from hloopt.search_budget import SearchBudget, SearchLimits


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self) -> float:
        return self.now


def test_iterations_are_taken_one_by_one() -> None:
    budget = SearchBudget("orders", SearchLimits(iterations=4), None)
    parts = []
    while budget.take():
        parts.append(budget.part)
    assert parts == [0.25, 0.5, 0.75, 1.0]
    assert budget.taken == 4
    assert not budget.take()
    assert budget.taken == 4


def test_no_iterations_are_none() -> None:
    budget = SearchBudget("orders", SearchLimits(iterations=0), None)
    assert budget.part == 1.0
    assert not budget.take()


def test_time_runs_from_the_beginning_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(search_budget, "time", clock)
    budget = SearchBudget("orders", SearchLimits(budget=Seconds(10)), None)
    for seconds, part, takes in ((0, 0.0, True), (5, 0.5, True), (9, 0.9, True), (10, 1.0, False)):
        clock.now = 1000.0 + seconds
        assert budget.part == part
        assert budget.take() == takes
    clock.now = 2000.0
    assert budget.part == 1.0
    assert budget.taken == 3


def test_no_time_is_none() -> None:
    assert not SearchBudget("orders", SearchLimits(budget=Seconds(0)), None).take()


def test_progress_is_told_now_and_then() -> None:
    told: list[tuple[str, float]] = []
    budget = SearchBudget(
        "a better schedule",
        SearchLimits(iterations=256),
        lambda what, part: told.append((what, part)),
        steps_per_report=64,
    )
    while budget.take():
        pass
    assert told == [("searching for a better schedule", part) for part in (0.0, 0.25, 0.5, 0.75)]
