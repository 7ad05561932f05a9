"""What pytest makes of a folder of golden tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hloopt.golden import MARKER

Pytest = Callable[..., str]


@pytest.fixture
def run_pytest(root: Path, tmp_path: Path) -> Pytest:
    """Runs pytest with the plugin on a folder; returns what it prints."""
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -p no:cacheprovider -p hloopt.pytest_plugin\n"
    )
    (tmp_path / "golden" / "inputs").mkdir(parents=True)

    def run(*arguments: str) -> str:
        options = ("--import-mode=importlib", "--color=no")
        command = [sys.executable, "-m", "pytest", *options, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(root / "src")}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        ).stdout

    return run


def test_files_are_collected_and_failures_are_told(tmp_path: Path, run_pytest: Pytest) -> None:
    golden = tmp_path / "golden"
    (golden / "inputs" / "x.hlo").write_text("HloModule m\n")
    run = "// RUN: filecheck %s --input-file %S/inputs/x.hlo"
    (golden / "good.hlo").write_text(f"{run}\n// CHECK: HloModule m\n")
    (golden / "bad.hlo").write_text(f"{run}\n// CHECK: HloModule n\n")
    (golden / "wrong.hlo").write_text("// RUN: filecheck 'x\n")
    output = run_pytest()
    assert "2 failed, 1 passed" in output
    assert "golden/bad.hlo:1: RUN: filecheck %s --input-file %S/inputs/x.hlo" in output
    assert "bad.hlo:2: error: Couldn't match" in output
    assert "repeat: filecheck golden/bad.hlo --input-file golden/inputs/x.hlo" in output
    assert "error: unbalanced quote in RUN line: 'x" in output
    assert "Traceback" not in output


def test_update_golden_mends_marked_files(tmp_path: Path, run_pytest: Pytest) -> None:
    test = tmp_path / "golden" / "help.hlo"
    run = "// RUN: echo filecheck - A Python-native clone | filecheck %s"
    test.write_text(f"{run}\n{MARKER}\n// CHECK: stale\n")
    assert "1 failed" in run_pytest()
    assert "1 passed" in run_pytest("--hloopt-update-goldens")
    assert f"{MARKER}\n// CHECK: filecheck - A Python-native clone" in test.read_text()
    assert "1 passed" in run_pytest()


def test_features_skip_and_expect_failures(tmp_path: Path, run_pytest: Pytest) -> None:
    run = "// RUN: filecheck %s < %s\n// CHECK: HloModule n\nHloModule m\n"
    for name, line in {
        "a.hlo": "// REQUIRES: no-such-feature",
        "b.hlo": "// XFAIL: *",
        "c.hlo": "// UNSUPPORTED: {{system-.*}}",
    }.items():
        (tmp_path / "golden" / name).write_text(f"{line}\n{run}")
    assert "2 skipped, 1 xfailed" in run_pytest()
    (tmp_path / "golden" / "b.hlo").write_text("// XFAIL: *\n// RUN: echo fine\n")
    assert "XFAIL, and it passes" in run_pytest()


PROGRAM = "HloModule m\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}\n"


def test_goldens_stand_beside_the_test(tmp_path: Path, run_pytest: Pytest) -> None:
    (tmp_path / "test_it.py").write_text(
        f"def test_it(hlo):\n    hlo.assert_matches_golden({PROGRAM!r}, 'goldens/step.hlo')\n"
    )
    (tmp_path / "goldens").mkdir()
    assert "1 failed" in run_pytest()
    assert "1 passed" in run_pytest("--hloopt-update-goldens")
    golden = tmp_path / "goldens" / "step.hlo"
    assert "parameter(0)" in golden.read_text()
    assert "1 passed" in run_pytest()
    golden.write_text(golden.read_text().replace("f32[4]", "f32[5]"))
    assert "the program is not the one in" in run_pytest()
