"""The search for memory: programs that fit, at the least time; what stays, and why."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal

from hloopt.diagnostics import PassRefused, PipelineError
from hloopt.memory.analysis import analyze_memory
from hloopt.memory.backends import GPU
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.judging import Judge
from hloopt.passes.overlap.memory_proposals import memory_proposals
from hloopt.passes.overlap.memory_walk import MemoryWalk
from hloopt.passes.overlap.options import MEMORY_FAMILIES, OverlapOptions
from hloopt.passes.overlap.search import Goal, OverlapSearch
from hloopt.search_budget import SearchBudget, SearchLimits
from hloopt.text import parse_module, print_module

SEARCH: dict[str, Any] = {"target": "h100_sxm", "iterations": 20, "memory_limit": 9 << 20}


@pytest.fixture(scope="module")
def scores(root: Path) -> str:
    """A mask that is needed before and after a matrix and its transpose: 12 MiB, 8 if it is made
    again."""
    return (root / "tests/golden/passes/memory-search/example.hlo").read_text(encoding="utf-8")


def told(text: str, **options: object) -> PassContext:
    context = PassContext("memory-search")
    create_pass("memory-search", {**SEARCH, **options}).run(parse_module(text), context)
    return context


def test_a_program_is_made_to_fit(scores: str) -> None:
    module = run_equal("memory-search", scores, **SEARCH)
    assert module.is_scheduled
    allocated = analyze_memory(module, backend=GPU).statistics.total_allocation_bytes
    assert allocated <= SEARCH["memory_limit"]
    context = told(scores)
    (applied,) = (remark.reason for remark in context.remarks if remark.kind == "applied")
    assert applied.startswith(f"it needs {allocated:,} bytes instead of 12,591,120, and a step ")
    gains = [remark.reason for remark in context.remarks if remark.kind == "analysis"]
    assert gains[-1].startswith("rematerialize down to ")
    assert gains[-1].endswith(", -4,194,304 bytes")
    assert context.statistics["decisions to rematerialize"] == 1


def test_a_program_that_fits_stays(scores: str) -> None:
    assert reasons_to_stay("memory-search", scores, **{**SEARCH, "memory_limit": 1 << 30}) == [
        "it fits: it needs 12,591,120 bytes, the limit is 1,073,741,824"
    ]


def test_without_a_limit_the_memory_of_the_target_counts(scores: str) -> None:
    (reason,) = reasons_to_stay("memory-search", scores, **{**SEARCH, "memory_limit": None})
    assert reason.endswith("the limit is 84,942,979,072")


@pytest.mark.parametrize(
    ("limit", "proved"),
    [(8_300_000, "which does not fit"), (8_394_000, "which would fit")],
)
def test_what_does_not_fit_stays_with_a_lower_bound(scores: str, limit: int, proved: str) -> None:
    (reason,) = reasons_to_stay("memory-search", scores, **{**SEARCH, "memory_limit": limit})
    assert reason.startswith("no decisions were found by which it fits: it needs 12,591,120 bytes")
    assert f"the limit is {limit:,}, the least that was found is 8,396," in reason
    assert (
        "; its instructions as they are need 8,392,704 in any order, with any of them computed "
        "again, slices transposed in place of arrays and all stacks in host memory, at %masked, "
        f"{proved}" in reason
    )


def test_only_decisions_of_the_kinds_wanted_are_made(scores: str) -> None:
    (reason,) = reasons_to_stay("memory-search", scores, **SEARCH, decisions=["minimize"])
    assert reason.startswith("no decisions were found by which it fits")


def test_iterations_and_a_seed_repeat_a_result(scores: str) -> None:
    first, second = (run_equal("memory-search", scores, **SEARCH) for _ in range(2))
    assert print_module(first) == print_module(second)


def test_a_limit_of_applications_is_kept(scores: str) -> None:
    context = PassContext("memory-search", applications=Applications(0))
    assert not create_pass("memory-search", SEARCH).run(parse_module(scores), context)


def test_errors(scores: str) -> None:
    with pytest.raises(PipelineError, match="memory-search needs a target, whose times it goes by"):
        create_pass("memory-search", {}).run(parse_module(scores), PassContext())
    unscheduled = parse_module(scores.replace(", is_scheduled=true", ""))
    why = "the module has no schedule, so nothing is known of its memory"
    with pytest.raises(PassRefused, match=why):
        create_pass("memory-search", SEARCH).run(unscheduled, PassContext())
    with pytest.raises(PipelineError, match="no target"):
        told(scores, target="h1000")


def test_a_late_decision_gives_options_to_a_pass_that_finishes(scores: str) -> None:
    module = parse_module(scores)
    draft = Draft(module).after(
        Decision("minimize", "hlo-memory-scheduler", (("algorithm", "bfs"),), "bfs", is_late=True)
    )
    assert draft is not None
    assert draft.module is module, "it changes nothing before the program is finished"
    judge = Judge(OverlapOptions(target="h100_sxm"))
    early = judge.finish(Draft(module)).module
    late = judge.finish(draft).module
    assert [i.name for i in late.entry.instructions] != [i.name for i in early.entry.instructions]


def test_memory_goes_before_time_where_a_step_may_be_longer(scores: str) -> None:
    judge = Judge(OverlapOptions(target="h100_sxm"))
    recompute = (("recompute", True), ("memory_limit_bytes", 9 << 20))
    given = judge.finish(Draft(parse_module(scores)))
    draft = given.draft.after(
        Decision("rematerialize", "rematerialization", recompute, "recompute", is_late=True)
    )
    assert draft is not None
    smaller = judge.finish(draft)
    assert smaller.allocated < given.allocated
    assert smaller.seconds > given.seconds
    assert Goal(9 << 20, given, may_be_longer=True).is_better(smaller, given)
    assert Goal(9 << 20, given).fits(smaller)
    assert not Goal(9 << 20, given).is_allowed(smaller)


def test_proposals_for_a_program_that_is_too_large(scores: str) -> None:
    judge = Judge(OverlapOptions(target="h100_sxm"))
    given = judge.finish(Draft(parse_module(scores)))
    proposed = [c for series in memory_proposals(given, 9 << 20, MEMORY_FAMILIES) for c in series]
    told = [change.what for change in proposed]
    assert "rematerialize down to 9,437,184 bytes, peak-priority" in told
    assert "rematerialize down to 6,606,028 bytes, always" in told
    assert "begin with the order of the memory scheduler bfs" in told
    assert "schedule for a device of 9,437,184 bytes" in told
    first = next(change for change in proposed if change.family == "rematerialize")
    draft = given.draft.after(first)
    assert draft is not None
    again = list(memory_proposals(judge.finish(draft), 9 << 20, MEMORY_FAMILIES))
    assert not any(first in series for series in again), "it is made already"
    some = list(memory_proposals(given, 9 << 20, ("minimize", "combine")))
    assert {change.family for series in some for change in series} == {"minimize"}


def test_once_a_program_fits_what_saves_more_is_not_tried(scores: str) -> None:
    judge = Judge(OverlapOptions(target="h100_sxm"))
    given = judge.finish(Draft(parse_module(scores)))
    search = OverlapSearch(judge, Goal(9 << 20, given, may_be_longer=True), given)
    budget = SearchBudget("decisions", SearchLimits(iterations=60), None)
    MemoryWalk(search, ("rematerialize",)).run(budget)
    assert search.best.allocated <= 9 << 20
    several = list(memory_proposals(given, 9 << 20, ("rematerialize",)))
    assert len(several) == 2
    for series in several:
        fitting = [search.judged((each,), lambda: None, budget) for each in series]
        tried = [judged for judged in fitting if judged is not None]
        assert [search.goal.fits(judged) for judged in tried] == [False] * (len(tried) - 1) + [True]
        assert len(tried) < len(series)


def test_orders_are_searched_of_more_programs_where_memory_goes_before_time(scores: str) -> None:
    judge = Judge(OverlapOptions(target="h100_sxm"))
    given = judge.finish(Draft(parse_module(scores)))
    budget = SearchBudget("decisions", SearchLimits(iterations=60), None)
    for may_be_longer, is_near in ((True, True), (False, False)):
        goal = Goal(int(given.allocated / 1.05), given, may_be_longer=may_be_longer)
        search = OverlapSearch(judge, goal, given)
        proposed = memory_proposals(given, goal.limit, ("minimize",))
        for decision in (decision for series in proposed for decision in series):
            make = partial(given.draft.after, decision)
            search.best = search.judged((decision,), make, budget) or search.best
        others = search.shortest(6)[1:]
        assert all(judged.allocated > goal.limit * 1.02 for judged in others)
        assert bool(others) is is_near
