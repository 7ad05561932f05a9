"""tools/equivalence.py tells a wrong pass from one that refuses, and both from what runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equivalence import REFUSED_BY_PASS, Settings, Validation, Verdict
from hloopt.ir import Module, Opcode
from hloopt.passes.simplification.dce import DeadCodeElimination

MODULE = """HloModule m

ENTRY main {{
  x = f32[4] parameter(0)
  unused = f32[4] negate(x)
  ROOT y = f32[4] add(x, x){attribute}
}}
"""


@pytest.fixture
def judge() -> Callable[..., Verdict]:
    def judge(passes: str, attribute: str = "") -> Verdict:
        settings = Settings(oracle=Path(), pipeline=None, passes=passes, engine="numpy")
        text = MODULE.format(attribute=attribute)
        return Validation(settings).check("m", text)

    return judge


def test_what_runs_is_equal_or_unchanged(judge: Callable[..., Verdict]) -> None:
    assert judge("dce").status == "equal"
    assert judge("cse").status == "unchanged"


def test_a_pass_that_refuses_a_module_does_not_change_its_meaning(
    judge: Callable[..., Verdict],
) -> None:
    malformed = ', frontend_attributes={_scheduling_group_id="first"}'
    verdict = judge("legalize-scheduling-annotations", malformed)
    assert (verdict.status, verdict.kind) == ("not runnable", REFUSED_BY_PASS)
    assert "_scheduling_group_id" in verdict.reason


def test_a_pass_that_is_wrong_is_found(
    judge: Callable[..., Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: DeadCodeElimination, module: Module, context: object) -> bool:
        x = module.entry.parameters[0]
        module.entry.set_root(module.entry.add(Opcode.NEGATE, x.shape, [x]))
        return True

    monkeypatch.setattr(DeadCodeElimination, "run", run)
    assert judge("dce").status == "different"
