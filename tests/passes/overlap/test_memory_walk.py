"""The walk to a program that fits: which stacks go to host memory, and which decisions are tried.

The figures of programs are made up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest
from tests.memory_space.residuals.programs import FUSED

from hloopt.passes.overlap import memory_walk
from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.judging import Judged
from hloopt.passes.overlap.memory_proposals import alike_stacks, offloaded
from hloopt.passes.overlap.memory_walk import MemoryWalk
from hloopt.passes.overlap.options import Family
from hloopt.passes.overlap.search import Goal, OverlapSearch
from hloopt.search_budget import SearchBudget, SearchLimits
from hloopt.text import parse_module

Table = dict[tuple[object, ...], tuple[int, float]]
"""By decisions the bytes and seconds of a program."""

GIVEN = (1000, 100.0)
"""Bytes and seconds of the program that is given."""
ALIKE: list[tuple[str, ...]] = [("a", "b"), ("c",), ("d",)]
"""The names of stacks; `a` and `b` are of one shape."""
Names = tuple[str, ...]
ALONE: Mapping[Names, tuple[int, float]] = {
    ("a",): (800, 110.0),  # 0.05 seconds a byte
    ("c",): (900, 101.0),  # 0.01
    ("d",): (950, 104.0),  # 0.08
}
"""By stacks in host memory the bytes and seconds of a program."""


@dataclass
class MadeUp:
    """A search whose programs have the figures of a table; those that are not in it fail."""

    goal: Goal
    best: Judged
    figures: Table
    asked: list[tuple[tuple[object, ...], ...]] = field(default_factory=list)

    def plan(self, upcoming: object) -> None:
        pass

    def judged(
        self, decisions: tuple[Decision, ...], make: Callable[[], Draft], budget: SearchBudget
    ) -> Judged | None:
        budget.take()
        said = tuple(_said(decision) for decision in decisions)
        self.asked.append(said)
        figures = self.figures.get(said)
        return None if figures is None else _judged(*figures, decisions)


def _said(decision: Decision) -> tuple[object, ...]:
    options = dict(decision.options)
    if decision.family == "offload":
        return cast("tuple[object, ...]", options["names"])
    return decision.family, options.get("memory_limit_bytes"), options.get("algorithm")


_SUNK = ("sink", None, None)


def _recomputed(goal: int) -> tuple[object, ...]:
    return (("rematerialize", goal, "peak-priority"),)


def _judged(size: int, seconds: float, decisions: tuple[Decision, ...] = ()) -> Judged:
    return Judged(
        *(seconds, seconds, seconds, 0.0, size, {}),
        decisions=decisions,
        make=lambda: Draft(parse_module(FUSED), decisions),
        finish=lambda draft: draft.module,
    )


def _walked(limit: int, figures: Table, *families: Family) -> MadeUp:
    given = _judged(*GIVEN)
    search = MadeUp(Goal(limit, given, may_be_longer=True), given, figures)
    walk = MemoryWalk(cast("OverlapSearch", search), families or ("offload",))
    walk.run(SearchBudget("decisions", SearchLimits(iterations=100), None))
    return search


@pytest.fixture
def _stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_walk, "alike_stacks", lambda module: ALIKE)


def _offloading(limit: int, together: Mapping[Names, tuple[int, float]]) -> MadeUp:
    """The walk where stacks have these figures together."""
    figures: Table = {}
    for known in (ALONE, together):
        figures.update({(names,): told for names, told in known.items()})
    return _walked(limit, figures)


def _made(search: MadeUp) -> list[tuple[object, ...]]:
    return [_said(decision) for decision in search.best.decisions]


@pytest.mark.usefixtures("_stacks")
def test_as_few_of_the_cheapest_stacks_move_as_it_takes() -> None:
    search = _offloading(700, {("c", "a"): (700, 112.0), ("c", "a", "b", "d"): (450, 130.0)})
    assert search.asked == [(("a",),), (("c",),), (("d",),), (("c", "a"),), (("c", "a", "b", "d"),)]
    assert _made(search) == [("c", "a")]


@pytest.mark.usefixtures("_stacks")
def test_a_single_stack_moves_where_that_is_enough() -> None:
    search = _offloading(950, {("c", "a", "b", "d"): (450, 130.0)})
    assert (("c", "a"),) not in search.asked
    assert _made(search) == [("c",)]


@pytest.mark.usefixtures("_stacks")
def test_one_more_moves_where_fewer_save_less_than_they_do_alone() -> None:
    more = {("c", "a"): (710, 112.0), ("c", "a", "b"): (600, 120.0)}
    search = _offloading(700, {**more, ("c", "a", "b", "d"): (450, 130.0)})
    assert _made(search) == [("c", "a", "b")]


@pytest.mark.usefixtures("_stacks")
@pytest.mark.parametrize(("seconds", "made"), [(111.0, "cabd"), (111.95, "ca")])
def test_all_stacks_move_where_a_step_is_clearly_shorter_then(seconds: float, made: str) -> None:
    search = _offloading(700, {("c", "a"): (700, 112.0), tuple("cabd"): (450, seconds)})
    assert _made(search) == [tuple(made)]


@pytest.mark.usefixtures("_stacks")
def test_a_stack_that_saves_nothing_stays() -> None:
    search = _offloading(500, {("d",): (1000, 100.0), ("c", "a", "b"): (500, 120.0)})
    assert _made(search) == [("c", "a", "b")]


@pytest.mark.usefixtures("_stacks")
def test_where_all_stacks_do_not_suffice_the_cheapest_decision_comes_first() -> None:
    search = _offloading(400, {("c", "a", "b", "d"): (450, 130.0)})
    places = [said[:-1] for said in search.asked if len(said) > 1]
    assert set(places) == {(("c",),)}, "0.01 seconds a byte, all together 0.055"


@pytest.mark.usefixtures("_stacks")
def test_stacks_stay_where_other_decisions_are_wanted() -> None:
    kinds = {said[-1][0] for said in _walked(700, {}, "minimize").asked}
    assert kinds == {"minimize"}


def test_stacks_of_one_shape_are_alike() -> None:
    long = FUSED.replace("[8]", f"[{1 << 20}]").replace("1,8]", f"1,{1 << 20}]")
    module = parse_module(
        long.replace("4,8]", f"4,{1 << 20}]").replace("{1,8}", f"{{1,{1 << 20}}}")
    )
    assert alike_stacks(module) == [("fill_a", "fill_b")]
    assert alike_stacks(parse_module(FUSED)) == [], "they are small"


def test_the_words_of_a_decision_about_stacks() -> None:
    assert offloaded(("a",)).what == "keep 1 stack, %a, in host memory"
    assert offloaded(("a", "b", "c", "d")).what == (
        "keep 4 stacks, %a, %b, %c and 1 more, in host memory"
    )
    assert offloaded(()).what == "keep all stacks in host memory"


@pytest.mark.parametrize("smaller", [900, 910])
def test_what_is_out_of_reach_is_not_tried_with_lower_goals(smaller: int) -> None:
    figures: Table = {
        _recomputed(950): (940, 101.0),
        _recomputed(700): (900, 102.0),
        _recomputed(665): (smaller, 103.0),
        _recomputed(630): (650, 103.0),
    }
    search = _walked(700, figures, "rematerialize")
    tried = [said for said in search.asked if len(said) == 1 and "peak-priority" in said[0]]
    assert tried == [_recomputed(goal) for goal in (950, 700, 665)]


@pytest.mark.usefixtures("_stacks")
def test_what_costs_no_time_is_done_before_the_rest_is_tried() -> None:
    figures: Table = {(_SUNK,): (900, 100.0), (_SUNK, ("a",)): (600, 110.0)}
    search = _walked(600, figures, "sink", "offload", "rematerialize")
    assert _made(search) == [_SUNK, ("a",)]
    assert [said for said in search.asked if len(said) == 1] == [(_SUNK,)]


@pytest.mark.usefixtures("_stacks")
def test_what_costs_time_is_done_where_it_is_cheapest() -> None:
    figures: Table = {(_SUNK,): (800, 100.1), (("a",),): (800, 110.0)}
    search = _walked(800, figures, "sink", "offload", "rematerialize")
    assert _made(search) == [_SUNK]
    assert (("a",),) in search.asked


@pytest.mark.usefixtures("_stacks")
def test_arrays_are_transposed_as_before_where_other_decisions_are_wanted() -> None:
    search = _walked(700, {(_SUNK,): (600, 100.0)}, "offload")
    assert (_SUNK,) not in search.asked
    assert _made(search) == []
