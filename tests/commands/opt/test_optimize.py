"""hloopt optimize: what is written, what is reported, and how a result is repeated."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hloopt.cli import main
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

TARGET = ("--target", "h100_sxm")


@pytest.fixture(scope="module")
def early(root: Path) -> str:
    """A loop of 8 trips that gathers two weights in each, without a schedule."""
    return (root / "tests/golden/passes/overlap-search/example.hlo").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def step(early: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the schedule that XLA:GPU would give it."""
    module = parse_module(early)
    for name, options in (
        ("async-collective-creator", {"convert_all_gather": True}),
        ("hlo-memory-scheduler", {"preset": "xla-gpu"}),
        ("latency-hiding-scheduler", {"preset": "xla-gpu", "target": "h100_sxm"}),
    ):
        create_pass(name, dict[str, Any](options)).run(module, PassContext(name))
    path = tmp_path_factory.mktemp("optimize") / "step.hlo"
    path.write_text(print_module(module), encoding="utf-8")
    return path


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_budget_of_time_is_repeated_byte_for_byte(
    step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first.hlo", tmp_path / "second.hlo"
    line = ["optimize", str(step), *TARGET, "--format", "json", "--seed", "3"]
    assert main([*line, "-o", str(first), "--budget", "1s"]) == 0
    found = told(capsys)
    assert found["changed"]
    assert found["tried"] > 1
    again = ["--iterations", str(found["iterations"]), "-j", "2"]
    assert main([*line, "-o", str(second), *again]) == 0
    repeated = told(capsys)
    assert first.read_bytes() == second.read_bytes()
    assert (repeated["tried"], repeated["decisions"]) == (found["tried"], found["decisions"])
    schedule = found["schedule"]
    assert schedule["after"]["makespan"] < schedule["before"]["makespan"]
    assert parse_module(first.read_text(encoding="utf-8")).is_scheduled


def test_a_limit_that_holds_already_is_kept(
    step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["optimize", str(step), *TARGET, "--iterations", "10", "--limit", "80GiB"]
    assert main([*line, "-o", str(tmp_path / "best.hlo")]) == 0
    page = capsys.readouterr().out
    assert page.startswith("schedule ")
    for words in (
        "makespan",
        "allocated",
        "80.0 GiB",
        "fits",
        "combine all-gathers",
        "--iterations 10",
    ):
        assert words in page


def test_a_program_that_cannot_fit_stays_and_is_told_by_the_exit_code(
    step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "best.hlo"
    line = ["optimize", str(step), *TARGET, "--iterations", "4", "--limit", "1KiB"]
    assert main([*line, "-o", str(output)]) == 1
    page = " ".join(capsys.readouterr().out.split())
    assert page.startswith("schedule ")
    assert "no decisions were found by which it fits" in page
    assert "which does not fit" in page
    assert "too much" in page
    assert output.read_text(encoding="utf-8") == step.read_text(encoding="utf-8")


def test_without_an_output_the_module_goes_to_stdout_and_the_report_to_stderr(
    step: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", str(step), *TARGET, "--iterations", "4"]) == 0
    out, err = capsys.readouterr()
    assert parse_module(out).is_scheduled
    assert "makespan" in err
    assert "wrote" not in err


def test_a_module_without_a_schedule_has_no_figures(
    early: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "early.hlo"
    path.write_text(early, encoding="utf-8")
    line = ["optimize", str(path), *TARGET, "--iterations", "10"]
    assert main([*line, "-o", str(tmp_path / "best.hlo"), "--format", "json"]) == 0
    found = told(capsys)
    assert found["schedule"] is None
    assert found["allocated"] == {"before": None, "after": None}
    assert found["decisions"]
    assert any("the module has no schedule" in note for note in found["notes"])
    page = tmp_path / "page.html"
    assert main([*line, "-o", str(tmp_path / "other.hlo"), "--html", str(page)]) == 2
    assert f"it shows two timelines, and {path} has no schedule" in capsys.readouterr().err
    assert main([*line, "-o", str(tmp_path / "other.hlo"), "--limit", "1GiB"]) == 2
    assert "no limit: memory is known of a schedule" in capsys.readouterr().err
    assert not page.exists()
    assert not (tmp_path / "other.hlo").exists()


def test_the_page_has_both_timelines(
    step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "best.html"
    line = ["optimize", str(step), *TARGET, "--iterations", "10", "--html", str(page)]
    assert main([*line, "-o", str(tmp_path / "best.hlo")]) == 0
    assert f"wrote {page}" in capsys.readouterr().err
    text = page.read_text(encoding="utf-8")
    for words in (
        'id="beforePage"',
        'id="afterPage"',
        "combine all-gathers up to 32 MiB",
        "<dt>step",
    ):
        assert words in text
    assert 0 < text.index("const $ = ") < text.index("$(side)")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--format", "json"), "--format json needs -o PATH: stdout is taken"),
        (("-o", "x", "--html", "x"), "-o and --html cannot both be written to x"),
        (("-o", "STEP"), "-o would overwrite the input"),
        (("-o", "/"), "cannot write /: Is a directory"),
        (("-o", "STEP/x"), "is a file, not a folder"),
        (("-o", "x", "--html", "/"), "cannot write /: Is a directory"),
        (("-o", "x", "--limit", "8"), "'8' has no unit"),
        (("-o", "x", "--budget", "soon"), "'soon' is no time"),
    ],
)
def test_mistakes(
    step: Path, options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [each.replace("STEP", str(step)) for each in options]
    assert main(["optimize", str(step), *TARGET, *given]) == 2
    assert message in capsys.readouterr().err


def test_a_target_is_needed(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", str(step)]) == 2
    assert "Missing option '--target'" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_told_before_the_search(
    step: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert main(["optimize", str(step), *TARGET, "-o", "x"]) == 2
    assert "cannot write x: Permission denied" in capsys.readouterr().err


def test_a_target_that_is_none_is_told_whatever_the_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plain.hlo"
    path.write_text("HloModule m\n\nENTRY e { ROOT p = f32[] parameter(0) }\n", encoding="utf-8")
    output = tmp_path / "best.hlo"
    assert main(["optimize", str(path), "--target", "none", "-o", str(output)]) == 2
    assert "no target 'none'" in capsys.readouterr().err
    assert not output.exists()


def test_a_page_on_stdout_leaves_the_report_to_stderr(
    step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["optimize", str(step), *TARGET, "--iterations", "2", "--html", "-"]
    assert main([*line, "-o", str(tmp_path / "best.hlo")]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("<!doctype html>")
    assert out.rstrip().endswith("</html>")
    assert "makespan" in err
