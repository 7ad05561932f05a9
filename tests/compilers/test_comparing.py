"""Verdicts on a pass of ours and one of XLA's, where XLA's result is a text."""

from __future__ import annotations

import pytest

from hloopt.compilers.comparing import Verdict, compare_with
from hloopt.compilers.isolation import Run
from hloopt.equivalence import RunSettings
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import parse_passes

BEFORE = """HloModule m, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY %e (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %c = f32[4]{0} constant(VALUES)
  ROOT %r = f32[4]{0} add(%p, %c)
}
"""


@pytest.mark.parametrize(
    ("values", "verdict", "reason"),
    [
        ("{1, 2, 3, 4}", Verdict.DIFFERENT, "output[0]"),
        ("{...}", Verdict.UNKNOWN, "'%c' has no values in the text: output[0]"),
    ],
)
def test_constants_without_values_decide_nothing(
    values: str, verdict: Verdict, reason: str
) -> None:
    before = BEFORE.replace("VALUES", values)
    run = Run("dce", "p", before, before.replace("add(", "subtract("))
    found = compare_with(run, parse_passes("dce", find_pipeline), RunSettings(seeds=1))
    assert found.verdict is verdict
    assert found.reason.startswith(reason)
