"""What the search for overlap takes for better, and how it changes decisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.ir import Opcode
from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.passes.overlap.search import Goal
from hloopt.text import parse_module

COMBINE = Decision(
    "combine", "combine-collectives", (("groups", (("up", "down"),)),), "combine %up and %down"
)
PIPELINE = Decision(
    "pipeline",
    "collective-pipeliner",
    (
        ("pipelining_direction", "backward"),
        ("names", ("all-gather",)),
        ("should_process", (Opcode.ALL_GATHER,)),
    ),
    "pipeline %all-gather backward",
)


@pytest.fixture(scope="module")
def draft(root: Path) -> Draft:
    path = root / "tests/golden/passes/overlap-search/example.hlo"
    return Draft(parse_module(path.read_text(encoding="utf-8")))


def judged(
    seconds: float = 1.0, smooth: float = 1.0, scheduler: float = 1.0, allocated: int = 100
) -> Judged:
    module = parse_module("HloModule m\n\nENTRY e { ROOT p = f32[] parameter(0) }\n")
    return Judged(
        seconds=seconds,
        smooth_seconds=smooth,
        scheduler_seconds=scheduler,
        exposed=0.0,
        allocated=allocated,
        waits={},
        decisions=(),
        make=lambda: Draft(module),
        finish=lambda draft: draft.module,
    )


GOAL = Goal(100, judged())


@pytest.mark.parametrize(
    ("program", "does"),
    [
        (judged(0.9), True),
        (judged(0.9, allocated=101), False),
        (judged(0.9, smooth=1.1), False),
        (judged(0.9, scheduler=1.1), False),
        (judged(1.1, 0.5, 0.5), False),
    ],
)
def test_a_program_is_allowed_that_no_model_finds_longer_and_that_has_the_memory(
    program: Judged, does: bool
) -> None:
    assert GOAL.is_allowed(program) == does
    assert GOAL.is_better(program, judged()) == does


def test_a_walk_may_need_a_little_more_memory() -> None:
    program = judged(0.9, allocated=105)
    assert GOAL.fits(program, 1.1)
    assert GOAL.is_nearer(program, judged(), slack=1.1)
    assert not GOAL.is_nearer(program, judged())
    assert not GOAL.is_better(program, judged())


def test_on_the_way_a_model_may_find_a_program_longer() -> None:
    program = judged(0.5, smooth=1.1)
    assert GOAL.is_nearer(program, judged())
    assert not GOAL.is_better(program, judged())
    assert GOAL.is_better(judged(), program)


def test_of_programs_that_do_not_fit_the_smaller_is_better() -> None:
    large, larger = judged(2.0, allocated=200), judged(0.5, allocated=300)
    assert GOAL.is_better(large, larger)
    assert not GOAL.is_better(larger, large)
    assert GOAL.is_better(judged(), large)
    assert not GOAL.is_better(large, judged())


def test_a_step_is_as_long_as_all_models_together_say() -> None:
    assert GOAL.is_better(judged(0.8, 0.9, 0.9), judged(0.9, 0.9, 0.9))
    assert not GOAL.is_better(judged(0.9, 0.9, 0.9), judged(0.9, 0.9, 0.9))
    assert not GOAL.is_better(judged(0.9995, 1, 1), judged(), least=1e-3)
    assert GOAL.length(judged(0.5, 0.5, 0.5)) == pytest.approx(0.5)


def test_a_goal_of_a_module_that_takes_no_time() -> None:
    assert Goal(100, judged(0.0, 0.0, 0.0)).length(judged()) == 1.0


def test_decisions_are_made_one_after_the_other(draft: Draft) -> None:
    after = draft.after(COMBINE, PIPELINE)
    assert after is not None
    assert [len(each.decisions) for each in after.prefixes()] == [0, 1, 2]
    assert after.prefixes()[0].module is draft.module
    assert sum(1 for _ in draft.module.instructions(Opcode.ALL_GATHER)) == 2


def test_a_decision_that_changes_nothing_is_none(draft: Draft) -> None:
    assert draft.after(PIPELINE) is None  # %all-gather is made by combining


def test_a_decision_may_be_taken_back(draft: Draft) -> None:
    after = draft.after(COMBINE, PIPELINE)
    assert after is not None
    without = after.without(1)
    assert without is not None
    assert without.decisions == (COMBINE,)
    assert after.without(0) is None  # what is pipelined would not be there


def test_waiting_is_told_by_collective(draft: Draft) -> None:
    found = Judge(OverlapOptions(target="h100_sxm")).finish(draft)
    assert found.waits.keys() == {"up", "down"}
    assert sum(found.waits.values()) == pytest.approx(found.exposed, rel=1e-3)
    notes = [i.attributes.get("frontend_attributes", "") for i in found.module.instructions()]
    assert not any("hloopt" in note for note in notes)
