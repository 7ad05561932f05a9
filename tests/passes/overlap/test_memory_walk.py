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
from hloopt.passes.overlap.search import LEAST_GAIN, Goal, OverlapSearch
from hloopt.search_budget import SearchBudget, SearchLimits
from hloopt.text import parse_module

Table = dict[tuple[object, ...], tuple[int, float]]
"""By decisions the bytes and seconds of a program."""

GIVEN = (1000, 100.0)
"""Bytes and seconds of the program that is given."""
ALIKE: list[tuple[str, ...]] = [("a", "b"), ("c",), ("d",)]
"""The names of stacks; `a` and `b` are of one shape."""
Names = tuple[str, ...]
_ALL: Names = ("a", "b", "c", "d")
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
        if not budget.take():
            return None
        said = tuple(_said(decision) for decision in decisions)
        self.asked.append(said)
        figures = self.figures.get(said)
        if figures is None:
            return None
        judged = _judged(*figures, decisions)
        if self.goal.is_better(judged, self.best, least=LEAST_GAIN):
            self.best = judged
        return judged


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


def _walked(limit: int, figures: Table, *families: Family, iterations: int = 100) -> MadeUp:
    given = _judged(*GIVEN)
    search = MadeUp(Goal(limit, given, may_be_longer=True), given, figures)
    walk = MemoryWalk(cast("OverlapSearch", search), families or ("offload",))
    walk.run(SearchBudget("decisions", SearchLimits(iterations=iterations), None))
    return search


@pytest.fixture
def _stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_walk, "alike_stacks", lambda module: ALIKE)


def _offloading(
    limit: int, together: Mapping[Names, tuple[int, float]], iterations: int = 100
) -> MadeUp:
    """The walk where stacks have these figures together."""
    figures: Table = {}
    for known in (ALONE, together):
        figures.update({(names,): told for names, told in known.items()})
    return _walked(limit, figures, iterations=iterations)


def _made(search: MadeUp) -> list[tuple[object, ...]]:
    return [_said(decision) for decision in search.best.decisions]


@pytest.mark.usefixtures("_stacks")
def test_all_stacks_are_tried_first_then_as_few_of_the_cheapest_as_it_takes() -> None:
    search = _offloading(700, {("c", "a"): (700, 112.0), _ALL: (450, 130.0)})
    assert search.asked == [(_ALL,), (("a",),), (("c",),), (("d",),), (("c", "a"),)]
    assert _made(search) == [("c", "a")]


@pytest.mark.usefixtures("_stacks")
@pytest.mark.parametrize(("iterations", "made"), [(1, _ALL), (4, _ALL), (5, ("c", "a"))])
def test_on_a_small_budget_all_stacks_move(iterations: int, made: Names) -> None:
    search = _offloading(700, {("c", "a"): (700, 112.0), _ALL: (450, 130.0)}, iterations)
    assert _made(search) == [made]


@pytest.mark.usefixtures("_stacks")
def test_a_single_stack_moves_where_that_is_enough() -> None:
    search = _offloading(950, {_ALL: (450, 130.0)})
    assert {len(said[0]) for said in search.asked} == {1, len(_ALL)}
    assert _made(search) == [("c",)]


@pytest.mark.usefixtures("_stacks")
def test_more_move_where_fewer_save_less_than_they_do_alone() -> None:
    more = {("c", "a"): (710, 112.0), ("c", "a", "b"): (600, 120.0)}
    search = _offloading(700, {**more, _ALL: (450, 130.0)})
    assert _made(search) == [("c", "a", "b")]


@pytest.mark.usefixtures("_stacks")
def test_fewer_move_where_they_save_more_than_they_do_alone() -> None:
    more = {("c", "a"): (590, 112.0), ("c", "a", "b"): (500, 120.0)}
    search = _offloading(600, {**more, _ALL: (450, 130.0)})
    assert _made(search) == [("c", "a")], "alone they save 300 of the 400 bytes"


@pytest.mark.usefixtures("_stacks")
@pytest.mark.parametrize(("seconds", "made"), [(111.0, _ALL), (111.95, ("c", "a"))])
def test_all_stacks_move_where_a_step_is_clearly_shorter_then(seconds: float, made: Names) -> None:
    search = _offloading(700, {("c", "a"): (700, 112.0), _ALL: (450, seconds)})
    assert _made(search) == [made]


@pytest.mark.usefixtures("_stacks")
def test_stacks_that_save_nothing_alone_move_where_they_do_with_others() -> None:
    nothing: Mapping[Names, tuple[int, float]] = {(name,): GIVEN for name in "acd"}
    assert _made(_offloading(500, {**nothing, _ALL: (500, 120.0)})) == [_ALL]
    more = {("d", "a", "b"): (500, 110.0), _ALL: (500, 120.0)}
    search = _offloading(500, {("a",): GIVEN, ("c",): GIVEN, **more})
    assert _made(search) == [("d", "a", "b")], "%d saves something alone, so it comes first"


@pytest.mark.usefixtures("_stacks")
@pytest.mark.parametrize("with_all", [(510, 105.0), (1010, 105.0)])
def test_a_stack_that_saves_nothing_stays(with_all: tuple[int, float]) -> None:
    more = {("c", "a"): (510, 110.0), ("c", "a", "b"): (500, 120.0), _ALL: with_all}
    search = _offloading(500, {("d",): GIVEN, **more})
    assert _made(search) == [("c", "a", "b")]


@pytest.mark.usefixtures("_stacks")
def test_as_few_stacks_move_where_only_those_fit_that_save_something_alone() -> None:
    more = {("c", "a"): (490, 110.0), ("c", "a", "b"): (480, 109.95), _ALL: (510, 130.0)}
    search = _offloading(500, {("d",): GIVEN, **more})
    assert _made(search) == [("c", "a")]


def test_their_number_is_looked_for_both_up_and_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_walk, "alike_stacks", lambda module: [("a", "b", "e"), *ALIKE[1:]])
    sizes = {"ca": 510, "cab": 490, "cabe": 480}
    more = {tuple(names): (size, 110.0) for names, size in sizes.items()}
    search = _offloading(500, {("d",): GIVEN, **more})
    assert _made(search) == [("c", "a", "b")]
    assert [len(said[0]) for said in search.asked] == [5, 1, 1, 1, 4, 2, 3]


def test_no_more_are_tried_where_all_do_not_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_walk, "alike_stacks", lambda module: [*ALIKE, ("e",)])
    search = _offloading(400, {("d",): GIVEN, ("c", "a", "b"): (500, 110.0)})
    first = [len(said[0]) for said in search.asked if len(said) == 1]
    assert first == [5, 1, 1, 1, 1, 3], "all, each alone, and those that save something alone"


@pytest.mark.usefixtures("_stacks")
@pytest.mark.parametrize(("seconds", "made"), [(130.0, ("c",)), (101.0, _ALL)])
def test_where_all_stacks_do_not_suffice_the_cheapest_decision_comes_first(
    seconds: float, made: Names
) -> None:
    search = _offloading(400, {_ALL: (450, seconds)})
    places = [said[:-1] for said in search.asked if len(said) > 1]
    assert set(places) == {(made,)}, "0.01 seconds a byte, all together 0.055 or 0.002"


@pytest.mark.usefixtures("_stacks")
def test_nothing_else_is_tried_where_all_stacks_cost_no_time() -> None:
    figures: Table = {(("c", "a"),): (700, 112.0), (_ALL,): (450, 99.0)}
    figures.update({(names,): told for names, told in ALONE.items()})
    search = _walked(700, figures, "offload", "rematerialize")
    assert _made(search) == [_ALL]
    assert not any(said[0][0] == "rematerialize" for said in search.asked)


def test_without_large_stacks_none_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_walk, "alike_stacks", lambda module: [])
    assert _offloading(700, {(): (600, 100.0)}).asked == []


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
def test_what_fits_on_the_way_is_kept_where_it_is_shorter() -> None:
    figures: Table = {(_SUNK,): (900, 100.5), (_ALL,): (450, 112.0), (_SUNK, _ALL): (400, 120.0)}
    search = _walked(700, figures, "sink", "offload")
    assert (_SUNK, _ALL) in search.asked
    assert _made(search) == [_ALL]


@pytest.mark.usefixtures("_stacks")
def test_arrays_are_transposed_as_before_where_other_decisions_are_wanted() -> None:
    search = _walked(700, {(_SUNK,): (600, 100.0)}, "offload")
    assert (_SUNK,) not in search.asked
    assert _made(search) == []
