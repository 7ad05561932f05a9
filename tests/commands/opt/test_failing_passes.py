"""`hloopt opt` where a pass fails, and pipelines that do not end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands.opt.passes_for_tests import TEXT, WITHOUT_DEAD, Run


def test_a_failing_pass_is_reported_with_its_cause_and_a_reproducer(
    run: Run, step: Path, tmp_path: Path
) -> None:
    folder, output = tmp_path / "repro files", tmp_path / "out.hlo"
    result = run(step, "--passes", "cse,fails", "-o", output, "--repro-dir", folder)
    assert (result.code, result.out) == (3, "")
    assert not output.exists()
    assert result.err.startswith(
        "error[HLO700]: pass 'fails' failed: ValueError: cannot do add while looking at %s "
        "(module m)\n"
    )
    (reproducer,) = folder.iterdir()
    assert f"to repeat: hloopt opt --repro '{reproducer}'" in result.err
    assert "Traceback" not in result.err
    text = reproducer.read_text()
    assert text.endswith(TEXT)  # as it was before the pass
    assert "cannot do add" in text
    again = run("--repro", reproducer, "--repro-dir", tmp_path / "again")
    assert again.code == 3
    assert again.err.splitlines()[0] == result.err.splitlines()[0]


def test_a_reproducer_keeps_no_verify_and_has_no_say_in_the_output(
    run: Run, step: Path, tmp_path: Path
) -> None:
    result = run(step, "--passes", "fails", "--no-verify", "--repro-dir", tmp_path / "r")
    assert result.code == 3
    (reproducer,) = (tmp_path / "r").iterdir()
    assert '"--no-verify"' in reproducer.read_text()
    evil = tmp_path / "evil.hlo"
    victim = tmp_path / "victim"
    evil.write_text(
        f"// hloopt-arguments: {json.dumps(['--passes', 'dce', '-o', str(victim)])}\n{TEXT}"
    )
    result = run("--repro", evil, "--print-after")
    assert result.code == 0
    assert "after dce" in result.err  # the user's options count
    assert not victim.exists()


def test_a_reproducer_that_cannot_be_written_does_not_hide_the_failure(
    run: Run, step: Path
) -> None:
    result = run(step, "--passes", "fails", "--repro-dir", step / "below")
    assert result.code == 3
    assert "cannot do add" in result.err
    assert "no reproducer: cannot make folder" in result.err


def test_a_pass_that_leaves_an_invalid_module_fails(run: Run, step: Path, tmp_path: Path) -> None:
    result = run(step, "--passes", "breaks", "--repro-dir", tmp_path)
    assert result.code == 3
    assert "pass 'breaks' failed: the module it leaves is invalid: " in result.err
    assert run(step, "--passes", "breaks", "--no-verify").code == 0


def test_a_pass_that_does_not_say_what_it_did_fails(run: Run, step: Path, tmp_path: Path) -> None:
    result = run(step, "--passes", "says-nothing", "--repro-dir", tmp_path)
    assert result.code == 3
    assert "run() returned None" in result.err


@pytest.mark.parametrize("name", ["fails", "breaks"])
def test_a_skipped_pass_leaves_the_module_as_it_was(
    run: Run, step: Path, tmp_path: Path, name: str
) -> None:
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(f"passes:\n  - {name}:\n    on_error: skip\n  - cse\n")
    result = run(step, "-p", pipeline, "--repro-dir", tmp_path / "r")
    assert (result.code, result.out) == (0, TEXT)
    assert result.err.startswith(f"warning: pass '{name}' failed and was skipped: ")
    assert "(module m)" in result.err
    if name == "fails":
        assert "ValueError: cannot do add while looking at %s" in result.err
    pipeline.write_text(f"passes:\n  - {name}:\n    on_error: skip\n  - dce\n")
    assert run(step, "-p", pipeline, "--repro-dir", tmp_path / "r").out == WITHOUT_DEAD
