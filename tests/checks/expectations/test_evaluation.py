"""Figures are compared as expectations say; no verdict where the stage allows none."""

from __future__ import annotations

import pytest
from tests.checks.expecting import STEP, UNPARTITIONED, checked, verdict, view_of

from hloopt.checks.doubts import Doubt
from hloopt.checks.expectations.evaluation import value_of
from hloopt.checks.expectations.grammar import parse_figure
from hloopt.checks.expectations.model import Measure, Scalar
from hloopt.checks.expectations.names import GROUPS, TABLES
from hloopt.checks.results import Verdict

PASSED, FAILED, NONE = Verdict.PASSED, Verdict.FAILED, Verdict.NONE
SCHEDULED = (
    STEP.partition("%gather")[0]
    + """
ENTRY %main (a: f32[1024]) -> f32[1024] {
  %a = f32[1024]{0} parameter(0)
  %m = f32[1024]{0} negate(%a)
  %s = f32[1024]{0} all-reduce-start(%m), replica_groups={{0,1,2,3}}, channel_id=1,
    use_global_device_ids=true, to_apply=%sum
  %d = f32[1024]{0} all-reduce-done(%s)
  ROOT %n = f32[1024]{0} negate(%d)
}
"""
)


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("collectives.count", 3),
        ("collectives(kind=all-reduce).count", 2),
        ("collectives(kind=all-gather, dtype=float).count", 1),
        ("collectives(dtype=f32).count", 2),
        ("collectives(dtype=f8).count", 0),
        ("collectives(form=async).count", 1),
        ("collectives(group_size=2).count", 1),
        ("collectives(in-loop).count", 1),
        ("collectives(payload>64B).count", 1),
        ("collectives.runs", 7),
        ("collectives.bytes", 32 + 128 + 5 * 32),
        ("collectives.static_bytes", 32 + 128 + 32),
        ("collectives.wire_bytes", 48 + 96 + 5 * 32),
        ("dots.count", 1),
        ("dots(lhs=bf16).count", 0),
        ("dots.flops", 2 * 8 * 8 * 8),
        ("convolutions.count", 0),
        ("custom_calls(target=*f8).count", 1),
        ("custom_calls.runs", 1),
        ("parameters.count", 3),
        ("parameters(name=*embed*).bytes", 32),
        ("parameters.max_bytes", 256),
        ("results.count", 3),
        ("results(number=1).bytes", 128),
        ("loops.count", 1),
        ("loops(trips=5).count", 1),
        ("loops.state_bytes", 36),
        ("computations(name=*od*).count", 1),
        ("computations.max_instructions", 13),
        ("instructions(opcode=constant).count", 3),
        ("instructions(opcode=add).runs", 5 + 5 + 1),
        ("module.computations", 5),
        ("module.devices", 4),
    ],
)
def test_values(figure: str, value: int) -> None:
    assert value_of(parse_figure(figure), view_of()) == value


@pytest.mark.parametrize(
    ("expectation", "expected"),
    [
        ("collectives.count == 3", PASSED),
        ("collectives.count != 3", FAILED),
        ("collectives.count < 3", FAILED),
        ("collectives.count <= 3", PASSED),
        ("collectives.count > 3", FAILED),
        ("collectives.count >= 3", PASSED),
        ("collectives.count in 1..3", PASSED),
        ("collectives.count in 4..9", FAILED),
        ("collectives.bytes <= 0.3125KiB", PASSED),
        ("collectives.bytes <= 319B", FAILED),
        ("loops.trips == 5", PASSED),
        ("loops.trips <= 4", FAILED),
        ("parameters(name=*embed*).sharding == {devices=[4]<=[4]}", PASSED),
        ("parameters(name=*embed*).sharding == { devices=[4] <= [4] }", PASSED),
        ("parameters(name=*embed*).sharding == {devices=[4]0,1,2,3}", PASSED),
        ("parameters(name=*embed*).sharding == {devices=[4]<=[2,2]T(0,1)}", PASSED),
        ("parameters(name=*embed*).sharding == {devices=[4]0,2,1,3}", FAILED),
        ("parameters(name=*embed*).sharding == {devices=[4]<=[2,2]T(1,0)}", FAILED),
        ("parameters(name=*embed*).sharding == {devices=[4]<=[999999999]}", FAILED),
        ("parameters(name=*embed*).sharding == {nonsense}", FAILED),
        ("parameters(name=*embed*).sharding != {replicated}", PASSED),
        ("parameters.sharding == {replicated}", FAILED),
        ("parameters.sharding ~ replicated|devices", FAILED),
        ("custom_calls.target == my*", PASSED),
        ('custom_calls.target == "my*"', FAILED),
        ("custom_calls.target !~ f16$", PASSED),
        ("instructions(opcode=dot).shape == f32[8,8]{1,0}", PASSED),
    ],
)
def test_comparisons(expectation: str, expected: Verdict) -> None:
    assert verdict(expectation) is expected


@pytest.mark.parametrize(
    ("expectation", "expected"),
    [
        ("dots(lhs=f64).count == 0", PASSED),
        ("dots(lhs=f64).count <= 4", PASSED),
        ("dots(lhs=f64).count < 1", PASSED),
        ("dots(lhs=f64).count in 0..3", PASSED),
        ("dots(lhs=f64).count >= 0", FAILED),
        ("dots(lhs=f64).count == 2", FAILED),
        ("dots(lhs=f64).count != 2", FAILED),
        ("dots(lhs=f64).shape ~ .", FAILED),
        ("dots(lhs=f64).shape != f32[8]", FAILED),
        ("loops(trips=9).trips <= 10", FAILED),
    ],
)
def test_what_is_about_nothing_holds_as_an_upper_limit_only(
    expectation: str, expected: Verdict
) -> None:
    found = checked(expectation)
    assert found.verdict is expected
    said = found.notes[0] if expected is PASSED else found.violations[0].message
    assert said.removeprefix("vacuous: ") in ("no products match", "no loops match")


@pytest.mark.parametrize(
    ("expectation", "help"),
    [
        ("custom_calls(target=*f9).count == 1", "target is my$f8."),
        ("collectives(kind=all-reduce, dtype=f64).count == 1", "dtype is bf16, f32."),
        ("dots(not lhs=f32).count == 1", ".count == 0"),
        ("loops(trips=5, depth=3).count == 1", "depth is 0."),
        ("convolutions(lhs=f32).count == 1", ".count == 0"),
    ],
)
def test_a_vacuous_expectation_is_told_which_values_there_are(expectation: str, help: str) -> None:
    (violation,) = checked(expectation).violations
    assert help in violation.help


@pytest.mark.parametrize(
    ("expectation", "reason"),
    [
        ("collectives.count == 0", "not partitioned over its 4 devices"),
        ("instructions(opcode=all-reduce).count == 0", "not partitioned over its 4 devices"),
        ("instructions(is-collective).count == 0", "not partitioned over its 4 devices"),
        ("memory.peak <= 1TiB", "not partitioned"),
        ("cost.bytes <= 1TB", "not partitioned"),
        ("schedule(target=h100_sxm).exposed <= 5%", "not partitioned"),
        ("replication.flops <= 5%", "not partitioned"),
    ],
)
def test_there_is_no_verdict_on_what_the_stage_does_not_tell(expectation: str, reason: str) -> None:
    found = checked(expectation, UNPARTITIONED)
    assert found.verdict is NONE
    assert reason in found.reason
    assert found.remedy.endswith(".")


def test_text_alone_has_a_verdict_at_any_stage() -> None:
    assert verdict("custom_calls(target=Sharding).count == 1", UNPARTITIONED) is PASSED
    assert verdict("parameters.sharding ~ devices", UNPARTITIONED) is PASSED
    assert verdict("module.instructions == 2", UNPARTITIONED) is PASSED


def test_runs_within_loops_of_unknown_trips_have_no_verdict() -> None:
    unknown = STEP.replace("constant(5)", 'custom-call(), custom_call_target="n"')
    for figure in ("runs", "bytes", "wire_bytes"):
        unit = "" if figure == "runs" else "B"
        found = checked(f"collectives.{figure} <= 9{unit}", unknown)
        assert found.verdict is NONE
        assert "%in_loop" in found.reason
        assert checked(f"collectives(not in-loop).{figure} >= 1{unit}", unknown).verdict is PASSED
    assert verdict("collectives.count == 3", unknown) is PASSED
    assert verdict("loops.trips <= 9", unknown) is NONE
    assert verdict("loops(trips=unknown).count == 0", unknown) is FAILED


def test_times_need_a_target_and_shares_are_of_the_makespan() -> None:
    assert "abstract cycles" in checked("schedule.exposed <= 5%", SCHEDULED).reason
    assert verdict("schedule.exposed <= 100%", SCHEDULED, "h100_sxm") is PASSED
    failed = checked("schedule(target=h100_sxm).exposed <= 5%", SCHEDULED)
    assert failed.verdict is FAILED
    assert failed.violations[0].location.instruction == "s"
    assert "% (" in failed.violations[0].message
    assert verdict("schedule(target=h100_sxm).exposed >= 1us", SCHEDULED) is PASSED
    assert verdict("operations(kind=all-reduce).exposed <= 5%", SCHEDULED, "h100_sxm") is FAILED
    roofline = "schedule(target=tpu_v5e, cost_model=roofline).makespan >= 1ns"
    assert verdict(roofline, SCHEDULED) is not FAILED


def test_memory_has_its_figures() -> None:
    assert verdict("memory.arguments == 4KiB", SCHEDULED) is PASSED
    failed = checked("memory.outputs == 0", SCHEDULED)
    assert failed.verdict is FAILED
    assert failed.violations[0].message == "it is 4.0 KiB (4,096 B)"


def test_a_failure_names_the_instructions_the_largest_first() -> None:
    (violation,) = checked("collectives.bytes == 0").violations
    assert violation.message == "it is 320 B"
    here = violation.location
    assert (here.instruction, here.line, here.source) == ("in_loop", 21, "/src/model.py:12")
    assert here.op_name == "jit(step)/psum"
    assert [place.instruction for place in violation.related] == ["inner", "whole"]
    each = checked("parameters.sharding == {replicated}").violations
    assert [violation.location.instruction for violation in each] == ["a", "w"]
    assert each[1].message == "%w has none"


@pytest.mark.parametrize("table", TABLES)
def test_every_figure_of_a_table_can_be_asked(table: str) -> None:
    for measure in TABLES[table].measures:
        if isinstance(measure, Measure):
            value = value_of(
                parse_figure(f"{table}.{measure.name}"), view_of(SCHEDULED, "h100_sxm")
            )
            assert isinstance(value, int | float | Doubt)
    for key in TABLES[table].vocabulary.own:
        parse_figure(f"{table}(not {key.name}).count")
        value_of(parse_figure(f"{table}({key.name}).count"), view_of())


@pytest.mark.parametrize("group", GROUPS)
def test_every_figure_of_a_group_can_be_asked(group: str) -> None:
    for scalar in GROUPS[group].scalars:
        assert isinstance(scalar, Scalar)
        value = value_of(parse_figure(f"{group}.{scalar.name}"), view_of(SCHEDULED, "h100_sxm"))
        assert isinstance(value, int | float)
