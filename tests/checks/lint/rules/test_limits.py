"""Limits: a figure above its limit is an error, at it is fine, and without one nothing runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.checks.expecting import STEP, UNPARTITIONED, view_of
from tests.checks.lint.linting import TARGET, check, violations

from hloopt.checks.baselines.figures import figure_of
from hloopt.checks.expectations.evaluation import value_of
from hloopt.checks.lint.baseline import LIMITS, with_limits
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.lint.settings import LintSettings
from hloopt.checks.results import Impact, Severity, Verdict
from hloopt.cost_models import CostModelChoice

UNKNOWN = 's32[] custom-call(), custom_call_target="n"'
CODES = ("HLL601", "HLL602", "HLL603", "HLL604", "HLL605", "HLL606")
MEMORY = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[256]{0} parameter(0)
  a = f32[256]{0:S(5)} copy(p)
  b = f32[256]{0} copy(a)
  c = f32[256]{0} copy(b)
  ROOT d = f32[256]{0} negate(c)
}
"""


KNOWN = """HloModule m

ENTRY e {
  p = f32[16,16] parameter(0)
  ROOT d = f32[16,16] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
WAITING = """HloModule m, is_scheduled=true, replica_count=8

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  p = f32[4194304] parameter(0)
  start = f32[4194304] all-reduce-start(p), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=sum
  ROOT done = f32[4194304] all-reduce-done(start)
}
"""


@pytest.mark.parametrize("code", CODES)
def test_without_a_limit_a_rule_does_not_run(code: str) -> None:
    rules = [rule.code for rule in LintSettings().rules("m")]
    assert code not in rules
    rule = all_rules()[code]
    assert rule.compares_with == "limit"
    assert rule.severity is Severity.ERROR
    options = {code: rule.options(**{"limit": 1})}
    assert code in [rule.code for rule in LintSettings(options=options).rules("m")]


@pytest.mark.parametrize(
    ("code", "text", "figure", "value"),
    [
        ("HLL601", MEMORY, "memory.peak", None),
        ("HLL602", MEMORY, "memory.temporaries", None),
        ("HLL604", KNOWN, "cost.flops", None),
        ("HLL605", STEP, "collectives.wire_bytes", 96 + 5 * 32 + 48),
        ("HLL606", MEMORY, "memory.host_temporaries", 1024),
    ],
)
def test_a_figure_at_its_limit_is_fine(
    code: str, text: str, figure: str, value: int | None
) -> None:
    known = value_of(figure_of(figure), view_of(text))
    assert isinstance(known, int)
    assert value in (None, known)
    assert violations(code, text, limit=known) == ()
    assert violations(code, text, limit=known + 1) == ()
    (found,) = violations(code, text, limit=known - 1)
    assert found.impact in (Impact(memory=1), Impact(moved=1), Impact())
    assert " above " in found.message
    assert found.location.instruction == ""


def test_a_share_at_its_limit_is_fine() -> None:
    makespan = value_of(figure_of("schedule.makespan"), view_of(WAITING, target=TARGET))
    exposed = value_of(figure_of("schedule.exposed"), view_of(WAITING, target=TARGET))
    assert isinstance(makespan, float)
    assert isinstance(exposed, float)
    share = exposed / makespan
    assert violations("HLL603", WAITING, limit=share) == ()
    (found,) = violations("HLL603", WAITING, limit=share / 2)
    assert found.impact.seconds == pytest.approx(exposed / 2)
    assert [each.instruction for each in found.related] == ["start"]


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        ("HLL601", UNPARTITIONED, "not partitioned"),
        ("HLL602", UNPARTITIONED, "not partitioned"),
        ("HLL603", UNPARTITIONED, "constants"),
        ("HLL604", STEP, "custom calls is not known"),
        ("HLL605", UNPARTITIONED, "not partitioned"),
        ("HLL605", STEP.replace("s32[] constant(5)", UNKNOWN), "trips"),
        ("HLL606", UNPARTITIONED, "not partitioned"),
    ],
)
def test_without_figures_there_is_no_verdict(code: str, text: str, reason: str) -> None:
    found = check(code, text, target=None, limit=1)
    assert found.verdict is Verdict.NONE
    assert reason in found.reason


def test_unknown_trips_do_not_matter_without_collectives() -> None:
    text = """HloModule m
body { s = f32[] parameter(0) ROOT t = f32[] negate(s) }
more { c = f32[] parameter(0) z = f32[] constant(0) ROOT l = pred[] compare(c, z), direction=GT }
ENTRY e { p = f32[] parameter(0) ROOT w = f32[] while(p), condition=more, body=body }
"""
    assert violations("HLL605", text, limit=1) == ()


H100 = CostModelChoice(target=TARGET)
TIMES = {f"schedule(target={TARGET}).exposed": 0.5, f"schedule(target={TARGET}).makespan": 2.0}


def limit_of(settings: LintSettings, code: str) -> object:
    rule = all_rules()[code]
    return getattr(settings.options_of(rule), rule.compares_with)


def test_figures_of_a_baseline_are_limits_where_none_is_set() -> None:
    before = {**dict.fromkeys(LIMITS.values(), 7), **TIMES}
    settings = with_limits(LintSettings(), before, H100)
    assert [limit_of(settings, code) for code in LIMITS] == [7, 7, 7]
    assert limit_of(settings, "HLL603") == 0.25
    rule = all_rules()["HLL601"]
    own = LintSettings(options={"HLL601": rule.options(**{"limit": 3})})
    assert limit_of(with_limits(own, before, H100), "HLL601") == 3
    assert with_limits(LintSettings(), {}, H100).options == {}


@pytest.mark.parametrize(
    "model",
    [CostModelChoice(), CostModelChoice(target="b200"), replace(H100, name="roofline")],
)
def test_times_of_another_cost_model_are_no_limits(model: CostModelChoice) -> None:
    assert with_limits(LintSettings(), TIMES, model).options == {}
    no_time = {f"schedule(target={TARGET}).exposed": 0.0, f"schedule(target={TARGET}).makespan": 0}
    assert with_limits(LintSettings(), no_time, H100).options == {}
