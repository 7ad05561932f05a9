"""`hloopt opt`: its inputs, what it writes, and what it reports."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from tests.commands.opt.passes_for_tests import TEXT, WITHOUT_DEAD, Run

from hloopt.reports.memory import comparison as memory_diff


def test_the_result_alone_goes_to_stdout(run: Run, step: Path) -> None:
    result = run(step, "--passes", "dce")
    assert (result.code, result.out, result.err) == (0, WITHOUT_DEAD, "")


def test_standard_input_is_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert run("-", "--passes", "dce").out == WITHOUT_DEAD
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"HloModule")))
    assert "--> <stdin>:1:10" in run("-", "--passes", "dce").err


def test_an_output_file_comes_with_a_report_on_stderr(run: Run, step: Path) -> None:
    output = step.with_name("out.hlo.gz")
    result = run(step, "--passes", "dce", "-o", output)
    assert (result.code, result.out) == (0, "")
    assert "6 → 5" in result.err
    assert f"wrote {output}" in result.err
    assert run(output, "--passes", "dce").out == WITHOUT_DEAD
    assert run(step, "--passes", "dce", "-o", output, "--no-report").err == ""


def test_the_report_compares_memory_where_that_is_quick(
    run: Run, step: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.hlo"
    assert "arguments" in run(step, "--passes", "dce", "-o", output).err
    assert "arguments" not in run(step, "--passes", "dce", "-o", output, "--no-memory").err
    assert "arguments" in run(step, "--passes", "dce", "--memory").err
    monkeypatch.setattr(memory_diff, "AUTOMATIC", 1)
    err = run(step, "--passes", "dce", "-o", output).err
    assert "arguments" not in err
    assert "instructions, more than 1; --memory makes it" in err
    assert "arguments" in run(step, "--passes", "dce", "-o", output, "--memory").err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_one_bad_input_does_not_keep_others_from_being_written(
    run: Run, tmp_path: Path, jobs: str
) -> None:
    inputs, outputs = tmp_path / "in", tmp_path / "out"
    (inputs / "sub").mkdir(parents=True)
    for name in ("a.hlo", "c.hlo", "sub/d.hlo.gz"):
        run_text = tmp_path / "text.hlo"
        run_text.write_text(TEXT)
        assert run(run_text, "--passes", "cse", "-o", inputs / name).code == 0
    (inputs / "b.hlo").write_text(TEXT.replace("negate", "negat"))
    result = run(inputs, "--passes", "dce", "-j", jobs, "-o", outputs, "--no-report")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error[HLO101]: unknown opcode 'negat'\n")
    assert result.err.count("error") == 1
    written = sorted(str(p.relative_to(outputs)) for p in outputs.rglob("*") if p.is_file())
    assert written == ["a.hlo", "c.hlo", "sub/d.hlo.gz"]
    assert (outputs / "a.hlo").read_text() == WITHOUT_DEAD


@pytest.mark.skipif(sys.platform != "linux", reason="the pass is known to forked processes only")
def test_a_lost_process_spoils_its_own_file_only(run: Run, tmp_path: Path) -> None:
    inputs, outputs = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    for name in ("a", "b", "c", "d"):
        text = TEXT.replace("HloModule m", "HloModule last") if name == "b" else TEXT
        (inputs / f"{name}.hlo").write_text(text)
    result = run(inputs, "--passes", "dies", "-j", "2", "-o", outputs, "--no-report")
    assert result.code == 2
    assert f"{inputs / 'b.hlo'}: the process that worked on it was ended" in result.err
    assert sorted(path.name for path in outputs.iterdir()) == ["a.hlo", "c.hlo", "d.hlo"]


def test_inputs_that_would_overwrite_each_other_are_refused(run: Run, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.hlo").write_text(TEXT)
    paths = [tmp_path / "a" / "x.hlo", tmp_path / "b" / "x.hlo"]
    assert "would both be written" in run(*paths, "--passes", "dce", "-o", tmp_path / "o").err
    assert "cannot go to stdout" in run(*paths, "--passes", "dce").err
    assert not (tmp_path / "o").exists()


def test_check_says_whether_anything_would_change_and_writes_nothing(run: Run, step: Path) -> None:
    output = step.with_name("out.hlo")
    result = run(step, "--passes", "dce", "--check", "-o", output)
    assert (result.code, result.out, result.err) == (1, "", f"would change: {step}\n")
    result = run(step, "--passes", "cse", "--check")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert not output.exists()
    assert step.read_text() == TEXT


def test_diff_shows_what_would_change(run: Run, step: Path) -> None:
    result = run(step, "--passes", "dce", "--diff")
    assert result.code == 1
    assert "\n-  dead = f32[4]{0} negate(p)\n" in result.out
    assert step.read_text() == TEXT
    assert run(step, "--passes", "cse", "--diff").code == 0


@pytest.mark.parametrize("options", [["--check"], ["--diff"], ["-o", "OUT"]])
def test_json_on_stdout_is_valid_whatever_else_is_asked_for(
    run: Run, step: Path, options: list[str]
) -> None:
    options = [str(step.with_name("out.hlo")) if o == "OUT" else o for o in options]
    result = run(step, "--passes", "call-inliner", "--format", "json", *options)
    (entry,) = json.loads(result.out)
    assert entry["file"] == str(step)
    (module,) = entry["modules"]
    assert module["changed"] is True
    assert [p["name"] for p in module["passes"]] == ["call-inliner"]
    assert ("-  c = " in entry["text_diff"]) is ("--diff" in options)


def test_json_names_the_error_of_a_file(run: Run, step: Path) -> None:
    step.write_text("HloModule")
    result = run(step, "--passes", "dce", "--format", "json", "--check")
    assert result.code == 2
    assert "expected" in json.loads(result.out)[0]["error"]
