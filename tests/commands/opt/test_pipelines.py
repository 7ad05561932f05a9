"""`hloopt opt` runs fixpoints, conditions and passes of other packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from tests.commands.opt.passes_for_tests import TEXT, WITHOUT_DEAD, Run

from hloopt.pass_framework import registry
from hloopt.pass_framework.registry import PASSES, pass_names


def test_a_fixpoint_that_does_not_end_is_reported(run: Run, step: Path) -> None:
    result = run(step, "--passes", "fixpoint(grows){max_iterations=3}")
    assert result.code == 0
    assert "warning: fixpoint(grows) still changed the module in iteration 3" in result.err
    assert 'op_name="xxx"' in result.out


def test_a_fixpoint_that_goes_in_circles_is_stopped(run: Run, step: Path) -> None:
    result = run(step, "--passes", "fixpoint(swings)", "--print-after")
    assert result.code == 0
    assert "warning: fixpoint(swings) goes in circles: after iteration 3" in result.err
    assert result.err.count("after swings") == 3


def test_circles_are_recognized_under_new_names_after_many_iterations(run: Run, step: Path) -> None:
    """Passes that undo each other may name anew what they make, and would go on for ever."""
    result = run(step, "--passes", "fixpoint(renames){max_iterations=999999999}")
    assert result.code == 0
    assert (
        "warning: fixpoint(renames) goes in circles: after iteration 26 the module is what it was "
        "after iteration 25; stopped"
    ) in result.err


def test_a_fixpoint_that_ends_is_not_worth_a_warning(run: Run, step: Path) -> None:
    assert run(step, "--passes", "fixpoint(dce,cse)").err == ""


@pytest.mark.parametrize(
    ("condition", "runs"),
    [
        ("{has_calls: true}", True),
        ("{has_calls: false}", False),
        ("{is_scheduled: false}", True),
        ("{has_opcode: [while, negate]}", True),
        ("{has_opcode: [while]}", False),
        ("{min_instructions: 6}", True),
        ("{min_instructions: 7}", False),
        ("{has_calls: true, has_loops: true}", False),
    ],
)
def test_conditions_decide_whether_a_step_runs(
    run: Run, step: Path, tmp_path: Path, condition: str, runs: bool
) -> None:
    pipeline = tmp_path / "p.yaml"
    for item in ("dce:", "fixpoint: {passes: [dce]}"):
        pipeline.write_text(f"passes:\n  - {item}\n    when: {condition}\n")
        assert run(step, "-p", pipeline).out == (WITHOUT_DEAD if runs else TEXT)


def test_another_package_can_offer_passes(
    run: Run, step: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(PASSES, "grows")
    entry = EntryPoint("my_pass", "passes_for_tests:Grows", registry.ENTRY_POINTS)
    broken = EntryPoint("broken", "no_such_package:X", registry.ENTRY_POINTS)
    wrong = EntryPoint("wrong", "json:dumps", registry.ENTRY_POINTS)
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda **wanted: EntryPoints((entry, broken, wrong)).select(**wanted),
    )
    assert "my-pass" in pass_names()
    result = run(step, "--passes", "my-pass")
    assert 'op_name="x"' in result.out
    result = run(step, "--passes", "broken")
    assert result.code == 2
    assert "pass 'broken' cannot be loaded from no_such_package:X" in result.err
    result = run(step, "--passes", "wrong")
    assert "json:dumps is not a subclass of ModulePass" in result.err
