"""RUN lines that bash runs, and the options of FileCheck that the package does not have."""

from __future__ import annotations

from pathlib import Path
from shutil import which

import pytest

from hloopt.golden import TestSettings, run_test
from hloopt.golden.filecheck import main

MODULE = "HloModule m\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n"
SHELL = TestSettings(uses_shell=True, parameters={"WORD": "HloModule"})
needs_bash = pytest.mark.skipif(which("bash") is None, reason="RUN lines of this kind need bash")


@needs_bash
@pytest.mark.parametrize(
    "run",
    [
        "hloopt opt %s --passes dce | sort | FileCheck %s",
        "for f in %s; do hlo-opt $f | filecheck %s; done",
        "not hlo-opt %s.no 2>&1 && echo %{WORD} m | FileCheck %s",
        "echo HloModule m > %t.1; FileCheck %s < %t.?",
    ],
)
def test_bash_has_the_commands_of_run_lines(tmp_path: Path, run: str) -> None:
    test = tmp_path / "t.hlo"
    test.write_text(f"// RUN: {run}\n// CHECK: HloModule m\n{MODULE}")
    failure = run_test(test, tmp_path, settings=SHELL)
    assert failure is None, str(failure)


@needs_bash
def test_a_failure_in_bash_shows_the_output(tmp_path: Path) -> None:
    test = tmp_path / "t.hlo"
    test.write_text(
        f"// RUN: hloopt opt %s --passes dce | FileCheck %s | cat\n// CHECK: nothing\n{MODULE}"
    )
    failure = str(run_test(test, tmp_path, settings=SHELL))
    assert "bash ended with exit code 1" in failure
    assert "Couldn't match" in failure
    assert f"repeat: hloopt test --shell {test}" in failure


def test_shell_is_a_feature() -> None:
    assert "shell" in SHELL.features
    assert "shell" not in TestSettings().features


@pytest.mark.parametrize(
    ("checks", "options", "code"),
    [
        ("CHECK: b", ["--implicit-check-not=z"], 0),
        ("CHECK: b", ["--implicit-check-not=a"], 1),
        ("CHECK: b", ["--implicit-check-not", "c{{$}}"], 1),
        ("CHECK: a\n// CHECK-NEXT: b\n// CHECK: c", ["--implicit-check-not=b"], 0),
        ("CHECK-NOT: b\n// CHECK: b", [], 0),
        ("CHECK-NOT: a\n// CHECK: b", [], 1),
        ("CHECK-NOT: b\n// CHECK-COUNT-1: b", [], 0),
        ("CHECK: a\n// CHECK-NOT: c\n// CHECK-DAG: c\n// CHECK-DAG: b", [], 0),
        ("CHECK: c\n// CHECK-NOT: b", [], 0),
        ("CHECK: a\n// CHECK-NOT: c", [], 1),
        ("CHECK-NOT: q", ["--implicit-check-not=b"], 1),
        ("CHECK: b", ["--allow-unused-prefixes", "--check-prefixes=CHECK,B", "-v", "--color"], 0),
        ("CHECK: b", ["--dump-input=help", "--dump-input-context=3"], 0),
        ("CHECK: b", ["--no-such-option"], 2),
        ("B: b", [], 2),
    ],
)
def test_options_of_filecheck(
    tmp_path: Path, checks: str, options: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "checks").write_text(f"// {checks}\n")
    (tmp_path / "input").write_text("a\nb\nc\n")
    arguments = [str(tmp_path / "checks"), f"--input-file={tmp_path / 'input'}", *options]
    assert main(arguments) == code
    assert bool(capsys.readouterr().err) is bool(code)


def test_a_file_with_checks_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "no file with CHECK lines" in capsys.readouterr().err


def test_the_input_is_shown_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t").write_text("// CHECK: some\nsome text\n")
    assert main([str(tmp_path / "t"), f"--input-file={tmp_path / 't'}", "--dump-input=always"]) == 0
    assert "some text" in capsys.readouterr().err
