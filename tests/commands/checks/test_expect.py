"""`hloopt expect`: what is expected, of which files, and what comes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.checks.expecting import STEP, UNPARTITIONED

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(STEP, encoding="utf-8")
    Path("whole.hlo").write_text(UNPARTITIONED, encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("step.hlo|collectives.count == 3", 0),
        ("collectives.count == 3|step.hlo", 0),
        ("step.hlo|collectives.count == 3|dots.count == 0", 1),
        ("step.hlo|dots.count == 0|--exit-zero", 0),
        ("whole.hlo|collectives.count == 0", 2),
        ("whole.hlo|collectives.count == 0|--allow-no-verdict", 0),
        ("whole.hlo|collectives.count == 0|--exit-zero", 2),
        ("step.hlo|whole.hlo|dots.count == 0", 1),
        (".|module.devices == 4", 0),
    ],
)
def test_exit_codes(arguments: str, code: int) -> None:
    assert main(["expect", *arguments.split("|")]) == code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("step.hlo", "nothing is expected"),
        ("dots.count == 0", "give a FILE to check"),
        ("step.hlo|dots.cout == 0", "did you mean 'count'?"),
        ("step.hlo|dot.count == 0", "unknown table 'dot'"),
        ("step.hlo|dots.count", "expected a comparison of count"),
        ("step.hlo|missing.hlo|dots.count == 0", "missing.hlo"),
        ("step.hlo|--expectations|none.yaml", "none.yaml"),
        ("step.hlo|--expectations|bad.yaml", "bad.yaml:2:8"),
        ("step.hlo|dots.count == 0|--max-guessed|9 kg", "'9 kg' is no share"),
        ("step.hlo|--baseline|none.json", "none.json"),
        ("step.hlo|--tolerance|peak=5%|dots.count == 0", "need --baseline FILE"),
        ("step.hlo|--update-baseline|dots.count == 0", "need --baseline FILE"),
        ("step.hlo|--baseline|a|--write-baseline|b", "say --update-baseline"),
        ("step.hlo|--write-baseline|step.hlo", "not JSON"),
        ("step.hlo|dots.count == 0|--target|h10", "no target 'h10'"),
    ],
)
def test_mistakes(arguments: str, message: str, capsys: Capture) -> None:
    Path("bad.yaml").write_text("- dots.count == 0\n- dots.cout == 0\n", encoding="utf-8")
    assert main(["expect", *arguments.split("|")]) == 2
    assert message in capsys.readouterr().err
    assert Path("step.hlo").read_text(encoding="utf-8") == STEP


def test_files_that_can_be_read_are_checked_beside_one_that_cannot(capsys: Capture) -> None:
    Path("bad.hlo").write_text("HloModule m\nENTRY e { ROOT p = f32[] paramter(0) }\n")
    line = ["expect", "bad.hlo", "step.hlo", "dots.count == 1"]
    assert main([*line, "--allow-no-verdict", "--exit-zero"]) == 2
    out, err = capsys.readouterr()
    assert out.endswith("1 check: 1 passed\n")
    assert "bad.hlo:2:" in err
    assert main(["expect", "step.hlo", "bad.hlo", "--write-baseline", "b.json"]) == 2
    assert not Path("b.json").exists()


def test_a_file_that_looks_like_an_expectation_is_a_file() -> None:
    Path("dots.count==9").write_text(STEP, encoding="utf-8")
    assert main(["expect", "dots.count==9", "dots.count==1"]) == 0


def test_files_give_settings_and_expectations_for_some_modules(capsys: Capture) -> None:
    Path("e.yaml").write_text(
        "target: h100_sxm\nmax_guessed: 100%\nexpectations:\n"
        "  - expect: dots.count == 0\n    modules: whole\n    why: it is a stub\n"
        "  - expect: dots.count == 0\n    modules: st*\n    why: no products\n",
        encoding="utf-8",
    )
    assert main(["expect", "step.hlo", "whole.hlo", "--expectations", "e.yaml"]) == 1
    out = capsys.readouterr().out
    assert "no products" in out
    assert "stub" not in out
    assert out.endswith("2 checks: 1 passed, 1 failed\n")


def test_text_names_the_instructions(capsys: Capture) -> None:
    assert main(["expect", "step.hlo", "collectives.count <= 2", "--top", "2"]) == 1
    assert capsys.readouterr().out == (
        "FAILED collectives.count <= 2\n"
        "  it is 3\n"
        "    %inner    11:8\n"
        "    %in_loop  21:3  jit(step)/psum /src/model.py:12\n"
        "    … and 1 more\n"
        "1 check: 1 failed\n"
    )


def test_a_report_is_written_whole_or_not_at_all(capsys: Capture) -> None:
    line = ["expect", "step.hlo", "dots.count == 1", "--format", "sarif", "-o", "r.sarif"]
    assert main(line) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(Path("r.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"
    Path("r.sarif").write_text("old", encoding="utf-8")
    assert main([*line, "dots.cout == 0"]) == 2
    assert Path("r.sarif").read_text(encoding="utf-8") == "old"


def test_text_can_be_written_to_a_file() -> None:
    assert main(["expect", "step.hlo", "dots.count == 1", "-o", "r.txt"]) == 0
    assert Path("r.txt").read_text(encoding="utf-8") == (
        "passed dots.count == 1  (1)\n1 check: 1 passed\n"
    )


def test_a_baseline_is_written_compared_and_updated(capsys: Capture) -> None:
    assert main(["expect", "step.hlo", "whole.hlo", "--write-baseline", "b.json"]) == 0
    assert "of 2 modules to b.json" in capsys.readouterr().err
    assert main(["expect", "step.hlo", "--baseline", "b.json"]) == 0
    doubled = STEP.replace("custom-call(%d)", "custom-call(%d2)").replace(
        "  %k =", "  %d2 = f32[8,8]{1,0} dot(%d, %d), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}\n  %k =",
    )  # fmt: skip
    Path("step.hlo").write_text(doubled, encoding="utf-8")
    capsys.readouterr()
    assert main(["expect", "step.hlo", "--baseline", "b.json"]) == 1
    assert "worse: 1 → 2, +100.0%" in capsys.readouterr().out
    worse = ["expect", "step.hlo", "--baseline", "b.json", "--tolerance"]
    assert main([*worse, "count=100%,instructions=10%,bytes=100%"]) == 0
    update = ["expect", "step.hlo", "--baseline", "b.json", "--update-baseline"]
    assert main([*update, "dots.count == 1"]) == 1  # what is expected is not updated
    capsys.readouterr()
    assert main(update) == 0
    assert capsys.readouterr().out == ""
    assert main(["expect", "step.hlo", "--baseline", "b.json"]) == 0
    modules = json.loads(Path("b.json").read_text(encoding="utf-8"))["modules"]
    assert modules.keys() == {"step", "whole"}


def test_modules_of_one_name_are_told_apart_and_new_ones_have_no_verdict(capsys: Capture) -> None:
    Path("other.hlo").write_text(STEP, encoding="utf-8")
    main(["expect", "step.hlo", "other.hlo", "--write-baseline", "b.json"])
    modules = json.loads(Path("b.json").read_text(encoding="utf-8"))["modules"]
    assert modules.keys() == {"step", "step#2"}
    assert main(["expect", "whole.hlo", "--baseline", "b.json"]) == 2
    assert "the baseline has no module whole" in capsys.readouterr().out


# -- settings of the project ----------------------------------------------------------------------


def test_the_target_is_that_of_the_command_line_of_the_file_or_of_the_project(
    capsys: Capture,
) -> None:
    Path("hloopt.toml").write_text('[expect]\ntarget = "h100_sxm"\nmax-guessed = "100%"\n')
    Path("e.yaml").write_text("target: b200\nexpectations: ['schedule.makespan == 0']\n")

    def makespan(*arguments: str) -> str:
        main(["expect", "step.hlo", *arguments, "--allow-no-verdict"])
        return capsys.readouterr().out

    line = "schedule.makespan == 0"
    of_project = makespan(line)
    assert of_project == makespan(
        line, "--isolated", "--target", "h100_sxm", "--max-guessed", "100%"
    )
    assert makespan(line, "--target", "b200") != of_project
    assert makespan("--expectations", "e.yaml") == makespan(line, "--target", "b200")
    assert makespan(line, "--isolated") not in (of_project, "")


def test_the_share_that_may_be_guessed_is_that_of_the_project() -> None:
    line = ["expect", "step.hlo", "schedule.makespan >= 0", "--target", "h100_sxm"]
    for share, code in (("100%", 0), ("0%", 2)):
        Path("hloopt.toml").write_text(f'[expect]\nmax-guessed = "{share}"\n')
        assert main(line) == code
    assert main([*line, "--max-guessed", "100%"]) == 0
