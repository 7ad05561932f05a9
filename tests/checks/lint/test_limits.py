"""Limits: a figure above its limit is an error, at it is fine, and without one nothing runs."""

from __future__ import annotations

import pytest
from tests.checks.expecting import STEP, UNPARTITIONED, view_of
from tests.checks.lint.linting import check, violations

from hloopt.checks.lint.baseline import LIMITS, with_limits
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.lint.settings import LintSettings
from hloopt.checks.results import Impact, Severity

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
    ("code", "text", "figure"),
    [
        ("HLL601", MEMORY, 4096),
        ("HLL602", MEMORY, 1024),
        ("HLL606", MEMORY, 1024),
        ("HLL604", STEP.replace("custom-call(%d)", "negate(%d)"), None),
        ("HLL605", STEP, 176),
    ],
)
def test_a_figure_at_its_limit_is_fine(code: str, text: str, figure: int | None) -> None:
    text = text.replace(', custom_call_target="my$f8"', "") if figure is None else text
    (found,) = violations(code, text, limit=1)
    excess = int(found.message.partition(" above ")[0].rpartition(" ")[2] or 0) if 0 else None
    assert excess is None
    if figure is None:
        return
    assert violations(code, text, limit=figure) == ()
    (just,) = violations(code, text, limit=figure - 1)
    assert just.impact in (Impact(memory=1), Impact(moved=1))
    assert "above" in just.message
