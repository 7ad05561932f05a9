"""Judging ahead in other processes: the figures that the search finds alone, whatever happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hloopt.diagnostics import PipelineError
from hloopt.passes.overlap.ahead import JudgesAhead, NotAhead, content_of, judging_ahead
from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.judging import Judge
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.passes.overlap.proposals import proposals
from hloopt.text import parse_module, print_module

OPTIONS = OverlapOptions(target="h100_sxm", jobs=2)


@pytest.fixture(scope="module")
def draft(root: Path) -> Draft:
    path = root / "tests/golden/passes/overlap-search/example.hlo"
    return Draft(parse_module(path.read_text(encoding="utf-8")))


@pytest.fixture
def ahead(draft: Draft) -> Iterator[JudgesAhead]:
    made = JudgesAhead(OPTIONS, print_module(draft.module))
    yield made
    made.end()


def test_figures_are_those_that_are_found_alone(draft: Draft, ahead: JudgesAhead) -> None:
    judge = Judge(OPTIONS)
    changes = list(proposals(judge.finish(draft), OPTIONS.decisions))
    assert len(changes) > 4
    no_reductions = (("combine_threshold_in_bytes", 1 << 20),)
    changes.append((Decision("combine", "gpu-all-reduce-combiner", no_reductions, "nothing"),))
    ahead.plan(changes)
    made = 0
    for change in reversed(changes):  # in another order than planned
        alone = draft.after(*change)
        found = ahead.judged(change)
        assert (found is None) == (alone is None)
        if alone is not None:
            assert found == (content_of(alone), judge.figures_of(alone))
            made += 1
    assert made == len(changes) - 1


def test_decisions_go_on_from_those_before(draft: Draft, ahead: JudgesAhead) -> None:
    judge = Judge(OPTIONS)
    (first, *_) = (c for c in proposals(judge.finish(draft), ("pipeline",)) if draft.after(*c))
    place = judge.finish(draft.after(*first) or draft)
    (second, *_) = (c for c in proposals(place, ("combine",)) if place.draft.after(*c))
    both = draft.after(*first, *second)
    assert both is not None
    found = [ahead.judged(first), ahead.judged((*first, *second))]
    assert [each and each.figures for each in found] == [
        judge.figures_of(place.draft),
        judge.figures_of(both),
    ]
    foreseen = judge.foreseen(judge.figures_of(both), both.decisions, lambda: both)
    assert print_module(foreseen.module) == print_module(judge.finish(both).module)


def test_a_process_that_is_killed_judges_nothing_and_another_takes_its_place(
    draft: Draft, ahead: JudgesAhead
) -> None:
    changes = list(proposals(Judge(OPTIONS).finish(draft), OPTIONS.decisions))
    ahead.judged(changes[0])
    (worker, *_) = ahead._workers.values()
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGSTOP)  # so that it cannot answer first
    ahead.plan(changes[1:3])
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(NotAhead):
        ahead.judged(changes[1])
    assert ahead.judged(changes[1]) == ahead.judged(changes[1])


def test_mistakes_in_a_process_are_raised_here(ahead: JudgesAhead) -> None:
    unknown = Decision("combine", "no-such-pass", (), "run a pass that is none")
    with pytest.raises(PipelineError, match="no-such-pass"):
        ahead.judged((unknown,))


def test_a_single_process_has_no_others(draft: Draft) -> None:
    with judging_ahead(OverlapOptions(target="h100_sxm"), draft) as ahead:
        assert ahead is None
    with judging_ahead(OPTIONS, draft) as ahead:
        assert ahead is not None
        ahead.plan(proposals(Judge(OPTIONS).finish(draft), OPTIONS.decisions))
        workers = list(ahead._workers.values())
        assert len(workers) == 2
    assert not any(worker.is_alive() for worker in workers)


def test_a_search_has_one_process_at_least() -> None:
    with pytest.raises(PipelineError, match="jobs is 0: it takes 1 or more"):
        OverlapOptions(jobs=0)
