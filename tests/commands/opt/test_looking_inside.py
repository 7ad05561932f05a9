"""`hloopt opt` shows what passes do: modules, dumps, remarks, times, in colour or not."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.commands.opt.passes_for_tests import TEXT, WITHOUT_DEAD, Run

from hloopt.cli import main


def test_modules_are_printed_around_passes(run: Run, step: Path) -> None:
    titles = {
        "--print-before=dce": ["before dce"],
        "--print-after=cse": ["after cse"],
        "--print-after": ["after cse", "after dce"],
        "--print-changed": ["after dce"],
        "--print-changed=cse": [],
    }
    for option, expected in titles.items():
        result = run(step, "--passes", "cse,dce", option)
        lines = [line for line in result.err.splitlines() if line.startswith("// -----")]
        assert lines == [f"// ----- m: {title} -----" for title in expected], option
        assert result.err.count("HloModule m") == len(expected)
        assert result.out == WITHOUT_DEAD


def test_dumps_are_written_after_each_change(run: Run, step: Path) -> None:
    folder = step.with_name("dumps")
    assert run(step, "--passes", "cse,dce", "--dump-dir", folder).code == 0
    assert {p.name: p.read_text() for p in folder.iterdir()} == {
        "step.m.000.before.hlo": TEXT,
        "step.m.001.dce.hlo": WITHOUT_DEAD,
    }


def test_dumps_of_a_split_file_do_not_overwrite_each_other(run: Run, step: Path) -> None:
    step.write_text(f"{TEXT}// -----\n{TEXT}")
    folder = step.with_name("dumps")
    assert run(step, "--split-input-file", "--passes", "dce", "--dump-dir", folder).code == 0
    second = TEXT.count("\n") + 2
    names = {path.name for path in folder.iterdir()}
    assert {"step.m.001.dce.hlo", f"step-{second}.m.001.dce.hlo"} <= names


def test_runs_of_a_pass_are_told_apart_by_their_options(run: Run, step: Path) -> None:
    passes = (
        "algsimp,collective-pipeliner{last_run=false},"
        "collective-pipeliner{pipelining_direction=backward,should_process=[all-gather]},"
        "fixpoint(cse{is_layout_sensitive=true}),cse{is_layout_sensitive=true}"
    )
    done = run(str(step), "--passes", passes, "--report", "--no-memory")
    assert done.code == 0
    titles = [line.split("  ")[0] for line in done.err.splitlines()[1:6]]
    assert titles == [
        "algsimp",
        "collective-pipeliner (last_run=false)",
        "collective-pipeliner (backward, all-gather)",
        "cse (round 1)",
        "cse",
    ]
    done = run(str(step), "--passes", passes, "--check", "--format", "json")
    (module,) = json.loads(done.out)[0]["modules"]
    assert [entry["options"] for entry in module["passes"]][:3] == [
        {},
        {"last_run": "false"},
        {"pipelining_direction": "backward", "should_process": "[all-gather]"},
    ]


def test_timing_and_statistics_are_tables_on_stderr(run: Run, step: Path) -> None:
    result = run(step, "--passes", "grows,dce", "--timing", "--statistics")
    assert [line.split()[0] for line in result.err.splitlines() if line.strip()] != []
    for word in ("grows", "dce", "read", "passes", "write", "letters"):
        assert word in result.err


@pytest.mark.parametrize(
    ("filters", "kinds", "passes"),
    [
        (["applied"], {"applied"}, {"call-inliner", "remarks"}),
        (["missed"], {"missed"}, {"call-inliner"}),
        (["applied:remarks"], {"applied"}, {"remarks"}),
        (["applied:remarks", "missed"], {"applied", "missed"}, {"call-inliner", "remarks"}),
        (["applied,missed:call-inliner"], {"applied", "missed"}, {"call-inliner"}),
        (["analysis"], set(), set()),
    ],
)
def test_remarks_are_filtered_by_kind_and_pass(
    run: Run, step: Path, filters: list[str], kinds: set[str], passes: set[str]
) -> None:
    blocked = TEXT.replace(
        "dead = f32[4]{0} negate(p)",
        'c2 = f32[4]{0} call(p), to_apply=double, frontend_attributes={inlineable="false"}\n'
        "  dead = f32[4]{0} negate(p)",
    ).replace("add(c, c)", "add(c, c2)")
    step.write_text(blocked)
    options = [word for text in filters for word in ("--remarks", text)]
    err = run(step, "--passes", "call-inliner,remarks", *options).err
    fields = [line.removeprefix(str(step)).split(": ") for line in err.splitlines()]
    assert {field[1] for field in fields} == kinds
    assert {field[2] for field in fields} == passes
    if "missed" in kinds:
        assert f"{step}:11: missed: call-inliner: %c2: " in err


def test_remarks_in_json_are_those_asked_for_with_their_lines(run: Run, step: Path) -> None:
    options = ("--passes", "call-inliner", "--check", "--format", "json")
    [file] = json.loads(run(step, *options, "--remarks", "applied").out)
    [module] = file["modules"]
    assert module["remarks"]
    lines = step.read_text().splitlines()
    for remark in module["remarks"]:
        assert remark["kind"] == "applied"
        assert f"{remark['instruction']} =" in lines[remark["line"] - 1]
    for nothing in ((), ("--remarks", "missed")):
        assert json.loads(run(step, *options, *nothing).out)[0]["modules"][0]["remarks"] == []


@pytest.mark.parametrize("option", ["--remarks=missed:cse", "--print-after=cse"])
def test_a_pass_that_is_to_be_shown_but_does_not_run_is_named(
    run: Run, step: Path, option: str
) -> None:
    warning = "warning: cse is not among the passes: nothing of it is shown\n"
    assert run(step, "--passes", "dce", "--check", option).err.startswith(warning)
    assert warning not in run(step, "--passes", "fixpoint(cse)", "--check", option).err


@pytest.mark.parametrize(
    ("color", "no_color", "colored"),
    [("always", "", True), ("always", "1", True), ("never", "", False), ("auto", "", False)],
)
def test_colour_is_used_where_wanted(
    run: Run, step: Path, monkeypatch: pytest.MonkeyPatch, color: str, no_color: str, colored: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    err = run(step, "--passes", "dce", "--report", "--color", color).err
    assert ("\x1b[" in err) is colored


@pytest.mark.parametrize(("no_color", "colored"), [("", True), ("1", False)])
def test_no_color_is_obeyed_on_a_terminal(
    step: Path, monkeypatch: pytest.MonkeyPatch, no_color: str, colored: bool
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["opt", str(step), "--passes", "dce", "--report", "-o", str(step)]) == 0
    assert ("\x1b[" in terminal.getvalue()) is colored
