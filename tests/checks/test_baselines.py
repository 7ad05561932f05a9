"""Modules against their baselines: worse, better, new, and without a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.checks.expecting import STEP, UNPARTITIONED, view_of

from hloopt.checks.baselines.comparison import compare, parse_tolerances
from hloopt.checks.baselines.figures import known, values_of
from hloopt.checks.baselines.files import BaselineError, read_baseline, write_baseline
from hloopt.checks.expectations.units import Number
from hloopt.checks.results import Check, Verdict
from hloopt.checks.view import View
from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import HloError

ONE_MORE = STEP.replace(
    "%d = f32[8,8]{1,0} dot(%w, %w)",
    "%d2 = f32[8,8]{1,0} dot(%w, %w), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
    "  %d = f32[8,8]{1,0} dot(%w, %d2)",
)


def against(
    before: Mapping[str, Number], view: View, tolerances: Mapping[str, float] | None = None
) -> list[Check]:
    """The checks of a module against figures of before."""
    return compare(before, values_of(view, before), tolerances or {}, view.subject.file)


def changes(before: str, after: str, tolerances: str = "") -> dict[str, tuple[Verdict, str]]:
    """The checks of what changed, by figure, with what they say."""
    allowed = parse_tolerances(tolerances) if tolerances else {}
    *changed, same = against(known(values_of(view_of(before))), view_of(after), allowed)
    assert same.verdict is Verdict.PASSED
    return {
        check.name: (check.verdict, "".join((*check.notes, *(v.message for v in check.violations))))
        for check in changed
    }


def test_renamed_instructions_change_nothing() -> None:
    renamed = STEP.replace("%in_loop", "%psum.7").replace("%body", "%region_0.1")
    assert changes(STEP, renamed) == {}
    *_, same = against(known(values_of(view_of())), view_of())
    assert same.notes == (f"{len(known(values_of(view_of())))} figures as before",)


def test_more_is_worse_and_less_is_better() -> None:
    dots = "dots(lhs=f32, rhs=f32).count"
    worse, better = changes(STEP, ONE_MORE), changes(ONE_MORE, STEP)
    assert worse[dots] == (Verdict.FAILED, "worse: 1 → 2, +100.0%")
    assert better[dots] == (Verdict.PASSED, "better: 2 → 1, -50.0%")
    assert changes(STEP, ONE_MORE, "dots.count=100%")[dots][0] is Verdict.PASSED
    assert changes(STEP, ONE_MORE, "count=99%")[dots][0] is Verdict.FAILED


def test_what_is_new_is_worse_and_what_is_gone_is_better() -> None:
    other = STEP.replace("my$f8", "other")
    found = changes(STEP, other)
    assert found["custom_calls(target=other).count"] == (Verdict.FAILED, "worse: 0 → 1, new")
    assert found['custom_calls(target="my$f8").count'][0] is Verdict.PASSED


def test_less_donated_memory_is_worse() -> None:
    view = view_of("HloModule m, is_scheduled=true\nENTRY e { ROOT a = f32[8] parameter(0) }")
    assert values_of(view)["memory.aliased"] == 0
    *found, _ = against({"memory.aliased": 32}, view)
    assert [check.verdict for check in found if check.name == "memory.aliased"] == [Verdict.FAILED]


def test_figures_without_a_verdict_are_left_out_and_missed_later() -> None:
    assert not any(text.startswith("memory") for text in known(values_of(view_of(UNPARTITIONED))))
    found, *_ = against({"memory.peak": 8}, view_of(UNPARTITIONED))
    assert found.verdict is Verdict.NONE
    assert "not partitioned" in found.reason


def test_times_are_by_the_target_that_they_were_by() -> None:
    view = view_of("HloModule m, is_scheduled=true\nENTRY e { a = f32[8] parameter(0)\n"
                   "ROOT n = f32[8] negate(a) }")  # fmt: skip
    assert not any(text.startswith("schedule") for text in values_of(view))
    key = "schedule(target=b200).exposed"
    assert values_of(view.trusting(), [key])[key] == 0


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = str(tmp_path / "base.json")
    baseline = {"m": known(values_of(view_of()))}
    write_baseline(path, baseline)
    assert read_baseline(path) == baseline
    write_baseline(path, {})
    assert read_baseline(path) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "this is no baseline"),
        ('{"hloopt_baseline": 9}', "version 9"),
        ('{"hloopt_baseline": 1}', "'modules' does not hold"),
        ('{"hloopt_baseline": 1, "modules": {"m": 5}}', "'modules' does not hold"),
        ('{"hloopt_baseline": 1, "modules": {"m": {"a": "b"}}}', "'modules' does not hold"),
        ('{"hloopt_baseline": 1, "modules": {"m": {"a": NaN}}}', "'modules' does not hold"),
        ('{"hloopt_baseline": 1, "modules": {"m": {"a": 1e999}}}', "'modules' does not hold"),
    ],
)
def test_what_is_no_baseline_is_refused_and_left(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "base.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BaselineError, match=message):
        read_baseline(str(path))
    if text:
        with pytest.raises(BaselineError, match=message):
            write_baseline(str(path), {})
        assert path.read_text(encoding="utf-8") == text


def test_a_figure_that_is_none_is_an_error() -> None:
    with pytest.raises(HloError, match="unknown figure of memory 'peek'"):
        against({"memory.peek": 8}, view_of())


@pytest.mark.parametrize("text", ["dots.shape", "parameters.sharding", "loops.count == 1"])
def test_a_text_of_rows_is_no_figure_of_a_baseline(text: str) -> None:
    with pytest.raises(HloError, match=r"and no number|expected the end of the figure"):
        against({text: 8}, view_of())


def test_the_cost_model_is_part_of_the_key() -> None:
    view = view_of()
    for chosen, key in (
        (CostModelChoice(target="b200"), "schedule(target=b200).exposed"),
        (
            CostModelChoice(target="b200", name="sol"),
            "schedule(target=b200, cost_model=sol).exposed",
        ),
    ):
        assert key in values_of(replace(view, cost_model=chosen))
    with pytest.raises(HloError, match=r"a b\.yaml"):
        values_of(replace(view, cost_model=CostModelChoice(target="a b.yaml")))


@pytest.mark.parametrize("text", ["peek=5%", "peak", "peak=5 kg", "peak=-5%", ""])
def test_what_is_no_tolerance(text: str) -> None:
    with pytest.raises(HloError, match=r"there is no figure|is no tolerance"):
        parse_tolerances(text)


def test_tolerances() -> None:
    assert parse_tolerances("peak=2%, schedule.exposed=0.1") == {
        "peak": 0.02,
        "schedule.exposed": 0.1,
    }
