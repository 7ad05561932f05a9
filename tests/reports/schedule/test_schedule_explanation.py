"""The reason why the scheduler puts instructions where it does, as text and as data."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from rich.console import Console
from tests.reports.schedule.test_schedule import TEXT
from tests.simulation.programs import programs

from hloopt.analysis.latency import TableModel
from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.reports.schedule.explanation import ScheduleExplanation
from hloopt.reports.schedule.explanation_record import explanation_to_json
from hloopt.reports.schedule.explanation_terminal import render_explanation
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.scheduling.config import SchedulerConfig
from hloopt.text import parse_module


def explain(*names: str, text: str = TEXT, **settings: Any) -> ScheduleExplanation:
    return ScheduleExplanation.of(parse_module(text), ScheduleSettings(**settings), names)


def page(found: ScheduleExplanation, width: int = 80, top: int = 10) -> str:
    stream = io.StringIO()
    render_explanation(found, Console(file=stream, width=width), top=top)
    return stream.getvalue()


def test_an_explanation_says_what_was_ready_and_which_rule_decided() -> None:
    found = explain("work", "%gather")
    work, gather = (explanation.decision for explanation in found.explanations)
    assert work is not None
    assert gather is not None
    assert [(c.better.name, c.worse.name, c.rule) for c in work.comparisons] == [
        ("work", "reduce", "kLessStall")
    ]
    text = page(found)
    assert "%work" in text
    assert "the best of 2 candidates" in text
    assert "lost to %work by kLessStall" in text
    assert "* kLessStall: prefer what can run soonest" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_an_explanation_says_whether_the_module_agrees() -> None:
    agrees, differs = explain("r", "gather").explanations
    assert agrees.own == agrees.scheduled
    assert (differs.own.position, differs.scheduled.position) == (3, 2)
    assert "module: the same place" in page(explain("r"))
    data = explanation_to_json(explain("r", "gather"))
    assert [one["same_neighbours"] for one in data["explanations"]] == [True, False]
    assert data["explanations"][0]["module_place"] == {
        "position": 8,
        "of": 8,
        "before": "reduced",
        "after": None,
    }


def test_a_cost_model_changes_times_and_their_unit() -> None:
    fixed = explain("work")
    light = explain("work", cost_model=CostModelChoice(target="h100_sxm"))
    assert "cycles from the end" in page(fixed)
    assert " us from the end" in page(light)
    assert explanation_to_json(light)["cost_model"] == "sol"
    units = [explanation_to_json(found)["unit"] for found in (fixed, light)]
    assert units == ["cycles", "us"]
    assert explanation_to_json(fixed)["seconds_per_unit"] is None


def test_what_an_overlap_limit_forbids_is_named() -> None:
    gathers = TEXT.replace(
        "work = f32[64,64] fusion(q), kind=kLoop, calls=square",
        "other = (f32[8,64], f32[64,64]) all-gather-start(p), channel_id=3, dimensions={0},"
        "replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true\n"
        "work = f32[64,64] all-gather-done(other)",
    )
    names = ("gathered", "work", "gather", "other")
    one = explain(*names, text=gathers)
    two = explain(*names, text=gathers, scheduler=SchedulerConfig(all_gather_overlap_limit=2))

    def obstacles(found: ScheduleExplanation) -> set[str | None]:
        explanations = explanation_to_json(found)["explanations"]
        decisions = [explanation["decision"] for explanation in explanations]
        return {node["obstacle"] for decision in decisions for node in decision["ready"]}

    assert "kExceedsOverlapLimit" in obstacles(one)
    assert obstacles(two) == {None}
    assert "kExceedsOverlapLimit: needs more of a resource" in page(one)


def test_a_computation_without_operations_is_left_alone() -> None:
    (explanation,) = explain("dot").explanations
    assert explanation.decision is None
    assert "not scheduled: nothing asynchronous is in its computation" in page(explain("dot"))


def test_long_lists_are_cut_and_the_chosen_one_is_first() -> None:
    lines = page(explain("work"), top=1).splitlines()
    table = lines.index(next(line for line in lines if line.startswith("ready then")))
    assert lines[table + 2].startswith("%work")
    assert lines[table + 3].startswith("… and 1 more")


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(HloError, match="no instruction 'gathr'") as caught:
        explain("gathr")
    assert caught.value.help == "did you mean 'gather'?"


@given(programs())
def test_places_are_those_of_the_pass_and_the_module_stays(
    program: tuple[Module, TableModel],
) -> None:
    module, _ = program
    names = [instruction.name for instruction in module.entry.instructions]
    found = ScheduleExplanation.of(module, ScheduleSettings(preset="xla-generic"), names)
    assert [instruction.name for instruction in module.entry.instructions] == names
    create_pass("latency-hiding-scheduler").run(module, PassContext())
    order = [instruction.name for instruction in module.entry.instructions]
    for explanation in found.explanations:
        place = explanation.scheduled
        assert order[place.position - 1] == explanation.instruction.name
        if explanation.decision is not None and explanation.decision.comparisons:
            losers = {comparison.worse for comparison in explanation.decision.comparisons}
            candidates = {n.instruction for n in explanation.decision.ready if not n.obstacle}
            assert candidates - losers == {explanation.instruction}
