"""What pytest makes of a folder of golden tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hloopt.golden import MARKER

Pytest = Callable[..., str]


@pytest.fixture
def run_pytest(root: Path, tmp_path: Path) -> Pytest:
    """Runs pytest on a folder with our conftest files; returns what it prints."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    shutil.copy(root / "tests" / "conftest.py", tmp_path)
    (tmp_path / "golden" / "inputs").mkdir(parents=True)
    shutil.copy(root / "tests" / "golden" / "conftest.py", tmp_path / "golden")

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
    test.write_text(f"// RUN: filecheck --help | filecheck %s\n{MARKER}\n// CHECK: stale\n")
    assert "1 failed" in run_pytest()
    assert "1 passed" in run_pytest("--update-golden")
    assert f"{MARKER}\n// CHECK: filecheck - A Python-native clone" in test.read_text()
    assert "1 passed" in run_pytest()
