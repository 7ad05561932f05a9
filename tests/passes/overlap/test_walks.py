"""Walks from decisions to better ones: what is tried, what is made, and what comes first."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.passes.overlap.proposals import begun_with
from hloopt.passes.overlap.search import Goal, OverlapSearch
from hloopt.search_budget import SearchBudget, SearchLimits
from hloopt.text import parse_module

PLENTY = 1 << 40


@dataclass(slots=True)
class CountingJudge(Judge):
    finished: list[Draft] = field(default_factory=list)

    def finish(self, draft: Draft, order: object = None) -> Judged:
        self.finished.append(draft)
        return Judge(self.options).finish(draft)


@pytest.fixture(scope="module")
def given(root: Path) -> Judged:
    """A loop of 8 trips, each of two products with weights that are gathered for them."""
    path = root / "tests/golden/passes/overlap-search/example.hlo"
    draft = Draft(parse_module(path.read_text(encoding="utf-8")))
    return Judge(OverlapOptions(target="h100_sxm")).finish(draft)


def search(given: Judged, *families: str) -> OverlapSearch:
    options = {"decisions": families} if families else {}
    judge = CountingJudge(OverlapOptions(target="h100_sxm", **options))  # type: ignore[arg-type]  # texts
    return OverlapSearch(judge, Goal(PLENTY, given), given)


def budget(iterations: int) -> SearchBudget:
    return SearchBudget("decisions", SearchLimits(iterations=iterations), None)


def combined(mebibytes: int) -> Decision:
    options = (
        ("combine_threshold_in_bytes", mebibytes << 20),
        ("combine_threshold_count", 256),
    )
    return Decision("combine", "gpu-all-gather-combiner", options, "combine")


def judged(found: OverlapSearch, steps: SearchBudget, *decisions: Decision) -> Judged | None:
    """The program after decisions on the one that was given."""
    return found.judged(decisions, partial(found.goal.given.draft.after, *decisions), steps)


def test_different_decisions_that_come_to_one_program_are_judged_once(given: Judged) -> None:
    found, steps = search(given), budget(9)
    first = judged(found, steps, combined(32))
    assert first is not None
    assert judged(found, steps, combined(64)) is first
    assert judged(found, steps, combined(32), begun_with("dfs", "order")) is not first
    assert steps.taken == 2


def test_what_cannot_be_made_takes_nothing_of_the_budget(given: Judged) -> None:
    found, steps = search(given), budget(9)
    nothing = Decision("separate", "collective-uncombiner", (("names", ("up",)),), "apart")
    assert judged(found, steps, nothing) is None
    assert steps.taken == 0


def test_once_the_budget_is_used_up_nothing_is_judged(given: Judged) -> None:
    found, steps = search(given), budget(1)
    assert judged(found, steps, combined(32)) is not None
    assert judged(found, steps, begun_with("dfs", "order")) is None


def test_of_the_changes_of_a_place_the_best_is_made(given: Judged) -> None:
    found = search(given, "pipeline")
    found.run(budget(200))
    alone = [each for each in found.tried.values() if each and len(each.decisions) == 1]
    assert found.goal.length(found.best) <= min(map(found.goal.length, alone))


def test_chance_begins_with_one_order_only(given: Judged) -> None:
    found = search(given, "order")
    found.run(budget(40))
    assert all(len(each.decisions) <= 1 for each in found.tried.values() if each)


def test_of_equally_long_programs_that_with_fewer_decisions_comes_first(given: Judged) -> None:
    found, steps = search(given), budget(9)
    judged(found, steps, begun_with("list", "order"), begun_with("dfs", "order"))
    judged(found, steps, begun_with("dfs", "order"))
    assert [len(each.decisions) for each in found.shortest(3)] == [0, 1, 2]
