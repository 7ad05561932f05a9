"""`hloopt test`: which tests run, what is said of them, what is left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hloopt.cli import main
from hloopt.golden import MARKER

Capture = pytest.CaptureFixture[str]
MODULE = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  dead = f32[4] negate(p)
  ROOT r = f32[4] add(p, p)
}
"""
RUN = "// RUN: hloopt opt %s --passes dce | filecheck %s\n"
GOOD = f"{RUN}// CHECK-NOT: dead\n{MODULE}"
BAD = f"{RUN}// CHECK: dead =\n{MODULE}"
BROKEN = f"// RUN: opt %s\n{MODULE}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "t/good.hlo": GOOD,
        "t/deep/more.hlotest": GOOD,
        "t/inputs/bad.hlo": BAD,
        "t/.hidden/bad.hlo": BAD,
        "t/no_test.hlo": MODULE,
        "t/good.py": GOOD,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def outcomes(capsys: Capture) -> dict[str, str]:
    return {each["path"]: each["outcome"] for each in json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize("jobs", [1, 2])
def test_tests_of_a_folder_are_those_with_run_lines(jobs: int, capsys: Capture) -> None:
    assert main(["test", "t", "-j", str(jobs), "--format", "json"]) == 0
    assert outcomes(capsys) == {"t/good.hlo": "passed", "t/deep/more.hlotest": "passed"}
    assert main(["test", "-j", str(jobs)]) == 0
    assert capsys.readouterr().out == "2 passed\n"


def test_a_file_that_is_named_is_a_test_whatever_its_name(capsys: Capture) -> None:
    assert main(["test", "t/good.py", "t/inputs/bad.hlo", "t/good.py", "--format", "json"]) == 1
    assert outcomes(capsys) == {"t/good.py": "passed", "t/inputs/bad.hlo": "failed"}


def test_a_failure_shows_the_run_line_the_input_and_how_to_repeat_it(capsys: Capture) -> None:
    Path("t/bad.hlo").write_text(BAD, encoding="utf-8")
    assert main(["test", "t/bad.hlo", "t/good.hlo"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("FAILED t/bad.hlo\n")
    assert "t/bad.hlo:1: RUN: hloopt opt %s --passes dce | filecheck %s" in out
    assert "filecheck read:" in out
    assert "repeat: hloopt opt t/bad.hlo --passes dce" in out
    assert out.endswith("1 passed, 1 failed\n")


def test_a_test_that_cannot_be_run_is_an_error_and_the_others_run(capsys: Capture) -> None:
    Path("t/broken.hlo").write_text(BROKEN, encoding="utf-8")
    Path("t/bytes.hlo").write_bytes(b"// RUN: hloopt \xff %s\n")
    assert main(["test", "t"]) == 2
    out = capsys.readouterr().out
    assert "unknown command 'opt' in RUN line" in out
    assert "bytes.hlo is not UTF-8" in out
    assert out.endswith("2 passed, 2 error\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("t/god.hlo", "did you mean 'good.hlo'?"),
        ("t -k nothing", "there is no test"),
        ("t/inputs/../no_folder", "no such file or folder"),
    ],
)
def test_mistakes(arguments: str, message: str, capsys: Capture) -> None:
    assert main(["test", *arguments.split()]) == 2
    assert message in capsys.readouterr().err


def test_tests_are_chosen_by_text_and_the_first_failure_stops(capsys: Capture) -> None:
    Path("t/a.hlo").write_text(BAD, encoding="utf-8")
    assert main(["test", "t", "-k", "deep", "--format", "json"]) == 0
    assert outcomes(capsys) == {"t/deep/more.hlotest": "passed"}
    assert main(["test", "t", "-x", "-j", "1", "--format", "json"]) == 1
    assert outcomes(capsys) == {"t/a.hlo": "failed"}


def test_those_that_failed_run_again(capsys: Capture) -> None:
    Path("t/a.hlo").write_text(BAD, encoding="utf-8")
    assert main(["test", "t"]) == 1
    capsys.readouterr()
    assert main(["test", "--lf", "--format", "json"]) == 1
    assert outcomes(capsys) == {"t/a.hlo": "failed"}
    assert main(["test", "t/good.hlo"]) == 0  # says nothing about the other one
    Path("t/a.hlo").write_text(GOOD, encoding="utf-8")
    capsys.readouterr()
    assert main(["test", "--lf", "--format", "json"]) == 0
    assert outcomes(capsys) == {"t/a.hlo": "passed"}
    assert main(["test", "--lf", "--format", "json"]) == 0
    assert len(outcomes(capsys)) == 3


@pytest.mark.parametrize("text", ["", "{", '{"a": 1}', "[1, 2]"])
def test_a_spoiled_record_is_none(text: str, capsys: Capture) -> None:
    Path(".hloopt_cache").mkdir()
    Path(".hloopt_cache/last_failed.json").write_text(text, encoding="utf-8")
    assert main(["test", "t", "--lf", "--format", "json"]) == 0
    assert len(outcomes(capsys)) == 2


def test_a_record_that_cannot_be_written_is_no_matter(capsys: Capture) -> None:
    Path(".hloopt_cache").write_text("", encoding="utf-8")  # a file, where a folder would be
    Path("t/a.hlo").write_text(BAD, encoding="utf-8")
    assert main(["test", "t"]) == 1


def test_check_lines_are_written_again_where_the_marker_is(capsys: Capture) -> None:
    Path("t/marked.hlo").write_text(f"{RUN}{MODULE}{MARKER}\n", encoding="utf-8")
    before = Path("t/good.hlo").read_text(encoding="utf-8")
    assert main(["test", "t", "--update", "--format", "json"]) == 0
    assert outcomes(capsys)["t/marked.hlo"] == "updated"
    assert "// CHECK" in Path("t/marked.hlo").read_text(encoding="utf-8").partition(MARKER)[2]
    assert Path("t/good.hlo").read_text(encoding="utf-8") == before
    assert main(["test", "t", "--update", "--format", "json"]) == 0
    assert set(outcomes(capsys).values()) == {"passed"}


def test_junit(capsys: Capture) -> None:
    Path("t/a.hlo").write_text(BAD, encoding="utf-8")
    Path("t/broken.hlo").write_text(BROKEN, encoding="utf-8")
    assert main(["test", "t", "--junit-xml", "r.xml"]) == 2
    (suite,) = ElementTree.parse("r.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "1")
    kinds = {case.get("name"): [each.tag for each in case] for case in suite}
    assert kinds["t/a.hlo"] == ["failure"]
    assert kinds["t/broken.hlo"] == ["error"]
    assert kinds["t/good.hlo"] == []


def test_nothing_is_left_in_temporary_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    assert main(["test", "t", "-j", "1"]) == 0
    assert os.listdir(scratch) == []


def test_the_example_of_the_docs_passes(root: Path) -> None:
    page = (root / "docs" / "golden_tests.md").read_text(encoding="utf-8")
    Path("example.hlo").write_text(page.partition("```hlo\n")[2].partition("```")[0])
    assert main(["test", "example.hlo"]) == 0


def test_init_makes_a_test_that_passes_and_can_fail(folder: Path, capsys: Capture) -> None:
    path = folder / "t" / "no_test.hlo"
    assert main(["test", "--init", "t/no_test.hlo", "--passes", "dce"]) == 0
    assert capsys.readouterr().out == "UPDATED t/no_test.hlo\n1 updated\n"
    text = path.read_text()
    assert text.startswith(f"// RUN: hloopt opt %s --passes dce | filecheck %s\n{MARKER}\n// CHECK")
    assert text.endswith(MODULE)
    assert main(["test", "t/no_test.hlo"]) == 0
    path.write_text(text.replace("f32[4] add(p, p)\n}", "f32[4] subtract(p, p)\n}"))
    assert main(["test", "t/no_test.hlo"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--init", "t/good.hlo", "--passes", "dce"], "has a RUN line: it is a test already"),
        (["--init", "t/no_test.hlo"], "--init needs the passes of the test"),
        (["--init", "t/no_test.hlo", "--passes", "dcf"], "did you mean"),
        (["--init", "t/none.hlo", "--passes", "dce"], "none.hlo: No such file"),
        (["t", "--passes", "dce"], "are those of --init"),
        (["t", "-D", "x"], "write NAME=VALUE"),
        (["t", "--shell", "--update"], "without --shell only"),
        (["--lit-config", "t", "t"], "takes one folder"),
    ],
)
def test_mistakes_in_options(
    folder: Path, arguments: list[str], message: str, capsys: Capture
) -> None:
    assert main(["test", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert (folder / "t" / "no_test.hlo").read_text() == MODULE


def test_update_all_rewrites_checks_of_hand(folder: Path, capsys: Capture) -> None:
    path = folder / "t" / "good.hlo"
    assert main(["test", "t/good.hlo", "--update"]) == 0
    assert path.read_text() == GOOD
    assert main(["test", "t/good.hlo", "--update-all"]) == 0
    text = path.read_text()
    assert text.startswith(f"{RUN}{MARKER}\n// CHECK")
    assert "CHECK-NOT" not in text
    assert main(["test", "t/good.hlo", "--update-all"]) == 0
    assert path.read_text() == text


def test_features_and_parameters(folder: Path, capsys: Capture) -> None:
    (folder / "t" / "f.hlo").write_text(
        f"// REQUIRES: h100\n// RUN: echo %{{GPU}} | filecheck %s\n// CHECK: sm_90\n{MODULE}"
    )
    assert main(["test", "t/f.hlo"]) == 0
    assert capsys.readouterr().out == "1 unsupported\n"
    assert main(["test", "t/f.hlo", "--feature", "h100", "-D", "GPU=sm_90"]) == 0
    assert capsys.readouterr().out == "1 passed\n"
    assert main(["test", "t/f.hlo", "--feature", "h100"]) == 2
    assert "%{GPU} has no value" in capsys.readouterr().out


def test_an_expected_failure_that_passes_is_one(folder: Path, capsys: Capture) -> None:
    (folder / "t" / "x.hlo").write_text(f"// XFAIL: *\n{BAD}")
    assert main(["test", "t/x.hlo", "--junit-xml", "j.xml"]) == 0
    assert capsys.readouterr().out == "1 xfailed\n"
    assert 'skipped="1"' in (folder / "j.xml").read_text()
    (folder / "t" / "x.hlo").write_text(f"// XFAIL: *\n{GOOD}")
    assert main(["test", "t/x.hlo", "--junit-xml", "j.xml"]) == 1
    assert "remove the line" in capsys.readouterr().out
    assert 'failures="1"' in (folder / "j.xml").read_text()


def test_a_lit_config_is_not_written_over(folder: Path, capsys: Capture) -> None:
    assert main(["test", "--lit-config", "t"]) == 0
    assert capsys.readouterr().out == f"wrote {Path('t/lit.cfg.py')}: run the tests with `lit t`\n"
    compile((folder / "t" / "lit.cfg.py").read_text(), "lit.cfg.py", "exec")
    assert main(["test", "--lit-config", "t"]) == 2


def test_lit_runs_the_tests(folder: Path) -> None:
    assert main(["test", "--lit-config", "t"]) == 0
    (folder / "t" / "bad.hlo").write_text(BAD)
    (folder / "t" / "no_test.hlo").unlink()  # one without RUN lines is a mistake for lit
    command = [sys.executable, "-c", "import lit.main; lit.main.main()", "-v", "t"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert re.search(r"Passed\s*: 2 ", done.stdout), done.stdout
    assert re.search(r"Failed\s*: 1 ", done.stdout)


@pytest.mark.slow
def test_lit_runs_our_own_tests(root: Path, folder: Path) -> None:
    """A sample of the folders: all of them take lit 100 s."""
    for name in ("errors", "opt", "pipelines", "schedule"):
        shutil.copytree(root / "tests" / "golden" / name, folder / "golden" / name)
    assert main(["test", "--lit-config", "golden"]) == 0
    command = [sys.executable, "-c", "import lit.main; lit.main.main()", "golden"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# -- settings of the project ----------------------------------------------------------------------


def test_paths_of_the_project_begin_at_its_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (folder / "bad.hlo").write_text(BAD)
    (folder / "hloopt.toml").write_text('[test]\npaths = ["t/deep"]\njobs = 1\n')
    monkeypatch.chdir(folder / "t" / "inputs")
    assert main(["test", "--format", "json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["path"] == os.path.join("..", "deep", "more.hlotest")
    assert main(["test", "bad.hlo"]) == 1
    assert main(["test", "--isolated"]) == 1


@pytest.mark.parametrize("jobs", ["0", "true", '"4"'])
def test_jobs_of_the_project_are_a_number(jobs: str, folder: Path, capsys: Capture) -> None:
    (folder / "hloopt.toml").write_text(f"[test]\njobs = {jobs}\n")
    assert main(["test", "t"]) == 2
    assert "'jobs' is not a positive integer" in capsys.readouterr().err
