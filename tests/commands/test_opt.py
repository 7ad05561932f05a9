"""`hloopt opt`: what it writes, what it reports, and what happens when a pass fails."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hloopt.cli import main
from hloopt.diagnostics import HloError, PassRefused
from hloopt.ir import Module, Opcode
from hloopt.pass_framework import registry
from hloopt.pass_framework.base import ModulePass, PassContext, register
from hloopt.pass_framework.registry import PASSES, create_pass, pass_names
from hloopt.reports.memory import comparison as memory_diff
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

if TYPE_CHECKING:
    from corpus import CorpusEntry

TEXT = """HloModule m

double {
  x = f32[4]{0} parameter(0)
  ROOT s = f32[4]{0} add(x, x)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  p = f32[4]{0} parameter(0)
  c = f32[4]{0} call(p), to_apply=double
  dead = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} add(c, c)
}
"""
WITHOUT_DEAD = TEXT.replace("  dead = f32[4]{0} negate(p)\n", "")


@register("fails")
class Fails(ModulePass):
    """Change the module, then fail."""

    def run(self, module: Module, context: PassContext) -> bool:
        create_pass("dce").run(module, context)
        for instruction in module.instructions(Opcode.ADD):
            raise ValueError(f"cannot do {instruction.opcode}")
        return True


@register("breaks")
class Breaks(ModulePass):
    """Leave a module that is invalid."""

    def run(self, module: Module, context: PassContext) -> bool:
        parameter = next(module.instructions(Opcode.PARAMETER))
        parameter.set_payload("7")
        return True


@register("lies")
class Lies(ModulePass):
    """Change the module and say that nothing changed."""

    def run(self, module: Module, context: PassContext) -> bool:
        create_pass("dce").run(module, context)
        return False


@register("says-nothing")
class SaysNothing(ModulePass):
    """Forget to say whether anything changed."""

    def run(self, module: Module, context: PassContext) -> bool:
        return None  # type: ignore[return-value]  # the mistake


@register("grows")
class Grows(ModulePass):
    """Change the module in each run."""

    def run(self, module: Module, context: PassContext) -> bool:
        add = next(module.instructions(Opcode.ADD))
        metadata = add.attributes.get("metadata", '{op_name=""}')
        add.set_attribute("metadata", metadata.replace('"}', 'x"}'))
        context.count("letters")
        return True


@register("swings")
class Swings(ModulePass):
    """Undo in every second run what the first one did."""

    def run(self, module: Module, context: PassContext) -> bool:
        add = next(module.instructions(Opcode.ADD))
        name = "b" if '"a"' in add.attributes.get("metadata", "") else "a"
        add.set_attribute("metadata", f'{{op_name="{name}"}}')
        return True


@register("remarks")
class Remarks(ModulePass):
    """Report the first instruction."""

    def run(self, module: Module, context: PassContext) -> bool:
        context.applied(next(module.instructions()), "looked at")
        return False


@register("dies")
class Dies(ModulePass):
    """End the process at the module called `last`, as a lack of memory would."""

    def run(self, module: Module, context: PassContext) -> bool:
        if module.name == "last":
            os._exit(1)
        return False


TEST_PASSES = (Fails, Breaks, Lies, SaysNothing, Grows, Swings, Remarks, Dies)


@pytest.fixture(autouse=True)
def _passes_for_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    home = ModuleType("passes_for_tests")
    for pass_class in TEST_PASSES:
        setattr(home, pass_class.__name__, pass_class)
        monkeypatch.setitem(PASSES, pass_class.name, f"passes_for_tests:{pass_class.__name__}")
    monkeypatch.setitem(sys.modules, "passes_for_tests", home)


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step.hlo"
    path.write_text(TEXT)
    return path


Run = Callable[..., SimpleNamespace]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `hloopt opt`; returns its code, out and err."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str | Path) -> SimpleNamespace:
        code = main(["opt", *map(str, arguments)])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return call


# -- input and output -------------------------------------------------------------------------


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


# -- looking inside ---------------------------------------------------------------------------


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


# -- failing passes ---------------------------------------------------------------------------


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


# -- pipelines --------------------------------------------------------------------------------


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
    assert "my-pass" not in pass_names(plugins=False)
    result = run(step, "--passes", "my-pass")
    assert 'op_name="x"' in result.out
    result = run(step, "--passes", "broken")
    assert result.code == 2
    assert "pass 'broken' cannot be loaded from no_such_package:X" in result.err
    result = run(step, "--passes", "wrong")
    assert "json:dumps is no subclass of ModulePass" in result.err


# -- honesty ----------------------------------------------------------------------------------


def assert_claims_honest(pass_: Any, module: Module) -> None:
    """A pass says that it changed the module exactly if it did, or refuses to do anything."""
    before = print_module(module)
    try:
        claim = pass_.run(module, PassContext(pass_.name))
    except PassRefused:
        return
    if pass_.name in _ALWAYS_CHANGE:
        assert claim is True
        return
    assert claim is (print_module(module) != before), f"{pass_.name} says {claim}"


_ALWAYS_CHANGE = {"copy-insertion"}
"""Passes that always say that they changed the module, as XLA's do."""


def test_a_lie_is_found_out() -> None:
    with pytest.raises(AssertionError, match="lies says False"):
        assert_claims_honest(create_pass("lies"), parse_module(TEXT))
    assert_claims_honest(create_pass("dce"), parse_module(TEXT))


def test_all_passes_say_truly_whether_they_changed_the_module(
    corpus_entries: list[CorpusEntry],
) -> None:
    names = [name for name in pass_names(plugins=False) if PASSES[name].startswith(".")]
    assert "cse" in names
    tried = 0
    for entry in [e for e in corpus_entries if e.verdict == "ok"][::12]:
        text = entry.text()
        try:
            if verify_module(parse_module(text)):
                continue
        except HloError:
            continue
        for name in names:
            module = parse_module(text)
            pass_ = create_pass(name)
            assert_claims_honest(pass_, module)
            assert_claims_honest(pass_, module)  # and again on its own result
        tried += 1
    assert tried > 300
