"""What the reducer does with the outcomes of trials."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import pytest

from hloopt.reduction.outcomes import NOT_SHOWN, Outcome
from hloopt.reduction.reducer import Reducer
from hloopt.reduction.trials import TimeLimit, Trials

MODULE = """HloModule m

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0)
  %a = f32[4] abs(%x)
  %n = f32[4] negate(%a)
  ROOT %s = f32[4] sine(%n)
}
"""


@dataclass(frozen=True)
class HangsOnNegate:
    """Does not end where there is a negate, and takes its time on any other module."""

    needs_valid: ClassVar[bool] = True
    starts_processes: ClassVar[bool] = False

    def __call__(self, text: str, steps: int | None = None) -> Outcome:
        time.sleep(60 if "negate" in text else 0.6 if "ENTRY" in text else 0)
        return NOT_SHOWN

    def narrowed(self, text: str, outcome: Outcome) -> HangsOnNegate:
        return self

    def describe(self) -> str:
        return "it hangs"

    def command(self, path: str) -> str:
        return path


@pytest.mark.slow
def test_a_slow_candidate_that_was_taken_for_one_that_hangs_is_found_out() -> None:
    with Trials(HangsOnNegate(), TimeLimit(1, is_shown=True)) as trials:
        failure = trials.outcome(MODULE)
        trials.outcome("HloModule nothing")
        reduction = Reducer(trials, failure).reduce(MODULE)
        assert trials.outcome(reduction.text, again=True).is_shown
    assert "negate" in reduction.text
    assert "abs" not in reduction.text
    assert reduction.after.instructions == 2
