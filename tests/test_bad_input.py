"""Mistakes of users end in one clear message, exit code 2, and no output file touched."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hloopt.cli import main
from hloopt.diagnostics import HloError, HloSyntaxError, render_error
from hloopt.text import parse_module

GOOD = """HloModule m

double {
  x = f32[4]{0} parameter(0)
  ROOT s = f32[4]{0} add(x, x)
}

ENTRY main {
  p = f32[4]{0} parameter(0)
  c = f32[4]{0} call(p), to_apply=double
  dead = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} add(c, c)
}
"""

Refuse = Callable[..., str]


@pytest.fixture
def refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Run a command line that must fail; returns what it said. `out.hlo` must stay as it was."""
    output = tmp_path / "out.hlo"
    output.write_text("as it was")

    def run(*arguments: str | Path, exit_code: int = 2) -> str:
        before = sorted(tmp_path.rglob("*"))
        assert main(list(map(str, arguments))) == exit_code
        stdout, stderr = capsys.readouterr()
        assert stdout == ""
        assert len(re.findall(r"^(?:Error|error\[HLO\d{3}\]): ", stderr, re.M)) == 1
        assert "Traceback" not in stderr
        assert output.read_text() == "as it was"
        assert sorted(tmp_path.rglob("*")) == before
        return stderr

    return run


# -- HLO text ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message", "hint"),
    [
        ("negate(p)", "negat(p)", 11, 20, "unknown opcode 'negat'", "did you mean 'negate'?"),
        ("add(c, c)", "add(c, dea)", 12, 29, "unknown operand '%dea'", "did you mean 'dead'?"),
        ("dead =", "c =", 11, 3, "instruction '%c' is defined twice", ""),
        ("ENTRY main", "double", 8, 1, "computation '%double' is defined twice", ""),
        ("negate(p)", "negate(r)", 11, 27, "unknown operand '%r'", "defined at line 12"),
        ("to_apply=double", "to_apply=dubble", 10, 35, "'%dubble'", "did you mean 'double'?"),
        ("add(x, x)", "call(x), to_apply=main", 5, 40, "'%main'", "cannot form a cycle"),
        ("add(x, x)", "call(x), to_apply=double", 5, 40, "'%double'", "cannot form a cycle"),
        ("p = f32[4]", "p = f33[4]", 9, 7, "unknown element type 'f33'", "did you mean"),
        ("p = f32[4]", f"p = f32[{'9' * 5000}]", 9, 7, "expected a dimension size", ""),
        ("p = f32[4]{0}", "p = f32[4]{0", 9, 7, "layout", ""),
        ("HloModule m", "HloModule m, is_schedule=true", 1, 14, "'is_schedule'", "is_scheduled"),
        ("ROOT s", "ROOT s\0", 5, 9, "NUL byte", ""),
        (GOOD, "", 1, 1, "the text is empty", ""),
        (GOOD, " \n// nothing\n", 3, 1, "the text is empty", ""),
        (GOOD, "HloModule m\n", 2, 1, "the module has no computation", ""),
    ],
)
def test_a_mistake_in_hlo_is_shown_with_line_column_caret_and_hint(
    refuse: Refuse, tmp_path: Path, old: str, new: str, line: int, column: int, message: str,
    hint: str,
) -> None:  # fmt: skip
    path = tmp_path / "step.hlo"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    stderr = refuse("opt", path, "-p", "simplify", "-o", tmp_path / "out.hlo")
    first, *rest = stderr.splitlines()
    assert re.match(r"error\[HLO\d{3}\]: ", first)
    assert message in first
    assert hint in stderr
    assert rest[0].strip() == f"--> {path}:{line}:{column}"
    assert rest[3].partition("|")[2].strip().strip("^") == ""


@pytest.mark.parametrize("length", range(12, len(GOOD) - 2, 7))
def test_a_truncated_file_is_refused(refuse: Refuse, tmp_path: Path, length: int) -> None:
    path = tmp_path / "truncated.hlo"
    path.write_text(GOOD[:length])
    try:
        parse_module(GOOD[:length])
    except HloSyntaxError:
        stderr = refuse("opt", path, "-p", "simplify", "-o", tmp_path / "out.hlo")
        assert f"--> {path}:" in stderr
    else:  # what is left may be whole computations
        assert GOOD[:length].rstrip().endswith("}")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)), "step.hlo:2: byte 0x80 at offset 136"),
        (GOOD.encode("utf-16"), "this looks like UTF-16"),
        (GOOD.encode().replace(b"main", b"m\xe4in"), "step.hlo:8: byte 0xe4 at offset"),
        (b"\0" * 100, "NUL byte"),
        (b"PK\x03\x04 zip", "error["),
    ],
)
def test_a_binary_file_is_refused(
    refuse: Refuse, tmp_path: Path, data: bytes, message: str
) -> None:
    path = tmp_path / "step.hlo"
    path.write_bytes(data)
    assert message in refuse("opt", path, "-p", "simplify", "-o", tmp_path / "out.hlo")


def test_a_byte_order_mark_is_no_part_of_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "step.hlo"
    path.write_text(GOOD, encoding="utf-8-sig")
    assert main(["opt", str(path), "--passes", "dce"]) == 0
    assert capsys.readouterr().out.startswith("HloModule m")


def test_every_single_changed_character_is_accepted_or_refused() -> None:
    """No exception but HloError comes out, whatever is broken where."""
    from hloopt.verifier import verify_module

    errors: list[HloError] = []
    accepted = 0
    for position in range(len(GOOD)):
        for character in '\0({}),="%9x':
            try:
                verify_module(parse_module(GOOD[:position] + character + GOOD[position + 1 :]))
                accepted += 1
            except HloError as error:
                errors.append(error)
    assert all(error.location and render_error(error) for error in errors)
    assert accepted
    assert errors


@pytest.mark.parametrize("depth", [10_000])
@pytest.mark.parametrize("closed", [True, False])
def test_deeply_nested_tuples_need_no_deep_recursion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], depth: int, closed: bool
) -> None:
    path = tmp_path / "deep.hlo"
    shape = "(" * depth + "f32[]" + ")" * (depth if closed else depth - 1)
    path.write_text(f"HloModule m\n\nENTRY e {{\n  ROOT p = {shape} parameter(0)\n}}\n")
    code = main(["opt", str(path), "-p", "simplify", "--check"])
    stdout, stderr = capsys.readouterr()
    assert (code, stdout) == ((0, "") if closed else (2, ""))
    assert ("deep.hlo:4:" in stderr) is not closed


def test_ten_levels_of_tuples_with_10_000_elements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wide.hlo"
    elements = ", ".join(["f32[8]{0}"] * 10_000)
    shape = "(" * 10 + elements + ")" * 10
    path.write_text(f"HloModule m\n\nENTRY e {{\n  ROOT p = {shape} parameter(0)\n}}\n")
    assert main(["opt", str(path), "-p", "simplify"]) == 0
    assert capsys.readouterr().out == path.read_text()


@pytest.mark.parametrize(
    "line",
    [
        "ROOT r = f32[4]{0} negate(NAME)",
        "ROOT r = f32[4]{0} NAME(p)",
        "ROOT r = f32[4]{0} negate(p), NAME={1}",
        "ROOT r = f32[4]{0} negate(p), sharding={NAME",
    ],
)
def test_a_line_of_a_megabyte_gives_a_short_message(
    refuse: Refuse, tmp_path: Path, line: str
) -> None:
    path = tmp_path / "long.hlo"
    long = line.replace("NAME", "n" * 1_000_000)
    path.write_text(f"HloModule m\n\nENTRY e {{\n  p = f32[4]{{0}} parameter(0)\n  {long}\n}}\n")
    stderr = refuse("opt", path, "-p", "simplify", "-o", tmp_path / "out.hlo")
    assert "long.hlo:5:" in stderr
    assert len(stderr) < 1000


def test_control_characters_of_the_input_do_not_reach_the_terminal(
    refuse: Refuse, tmp_path: Path
) -> None:
    stderr = refuse("opt", tmp_path / "out.hlo", "--passes", "d\x1b[31mce")
    assert "\x1b" not in stderr


# -- pipelines --------------------------------------------------------------------------------

BOMB = "passes:\n  - fixpoint: &a0 {passes: [dce, dce, dce, dce, dce, dce, dce]}\n" + "".join(
    f"  - fixpoint: &a{i} {{passes: [{', '.join([f'fixpoint: *a{i - 1}'] * 7)}]}}\n"
    for i in range(1, 19)
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("pases: [dce]", "1:1", "unknown key 'pases' in a pipeline", "did you mean 'passes'?"),
        ("name: x\n", "1:1", "a pipeline needs the key 'passes'", ""),
        ("- dce\n", "1:1", "expected a pipeline (a mapping)", ""),
        ("", "1:1", "the pipeline is empty", "passes:"),
        ("passes: dce", "1:9", "expected a list of passes", ""),
        ("passes:\n  - dec", "2:5", "unknown pass 'dec'", "did you mean 'dce'?"),
        ("passes:\n  - dce: {x: 1}", "2:11", "pass 'dce' has no option 'x'", "it has "),
        ("passes:\n  - dce: 3", "2:10", "expected the options of 'dce' (a mapping)", ""),
        (
            "passes:\n  - call-inliner: {single_call_site: 1}", "2:20",
            "option 'single_call_site' takes true or false, not 1", "",
        ),
        (
            "passes:\n  - call-inliner: {single_call_site: [a, 2]}", "2:20",
            "option 'single_call_site' takes true or false, not [\"a\", 2]", "",
        ),
        (
            "passes:\n  - call-inliner: {single_call_site: !!python/name:os.system x}", "2:20",
            'not "x"', "",
        ),
        ("passes:\n  - call-inliner: {single_call_site: !!int x}", "2:38", "not fit", ""),
        ("passes:\n  - call-inliner: {single_call_site: {a: 1}}", "2:20", "true or false, not", ""),
        ("passes:\n  - dce:\n    on_eror: skip", "2:5", "names dce, on_eror", "'on_error'"),
        ("passes:\n  - dce:\n    on_error: skp", "3:15", "on_error is fail or skip", ""),
        ("passes:\n  - dce:\n    when: {has_cals: true}", "3:12", "'has_cals'", "'has_calls'"),
        ("passes:\n  - dce:\n    when: {has_calls: 1}", "3:12", "true or false, not 1", ""),
        ("passes:\n  - dce:\n    when: {has_opcode: [adt]}", "3:12", '"adt"', "did you mean"),
        ("passes:\n  - dce:\n    when: {has_opcode: [[a]]}", "3:25", "single value", ""),
        ("passes:\n  - fixpoint: {passes: [dce], max_iteration: 3}", "2:31", "", "max_iterations"),
        ("passes:\n  - fixpoint: {passes: [dce], max_iterations: 0}", "2:47", "from 1 on", ""),
        ("passes:\n  - pipeline: simplif", "2:15", "no pipeline 'simplif'", "'simplify'"),
        ("passes:\n  - pipeline: dce", "2:15", "no pipeline 'dce'", "it is a pass: --passes dce"),
        ("passes:\n  - simplify", "2:5", "unknown pass 'simplify'", "it is a pipeline: -p"),
        ("passes: [dce]\npasses: [cse]", "2:1", "key 'passes' is given twice", ""),
        ("passes: [dce\n", "2:1", "not YAML", ""),
        ("\tpasses: [dce]", "1:1", "not YAML", ""),
        ("passes: [dce]\n---\npasses: [cse]", "2:1", "single document", ""),
        ("passes: [\x01]", "1:10", "characters are not allowed", ""),
        ("passes: &p\n  - fixpoint: {passes: *p}", "1:9", "nested too deeply", ""),
        (BOMB, "3:29", "more than 10,000 values", ""),
    ],
)  # fmt: skip
def test_a_mistake_in_yaml_is_shown_with_line_column_and_hint(
    refuse: Refuse, tmp_path: Path, text: str, place: str, message: str, hint: str
) -> None:
    hlo = tmp_path / "step.hlo"
    hlo.write_text(GOOD)
    pipeline = tmp_path / "pipeline.yaml"
    pipeline.write_text(text)
    stderr = refuse("opt", hlo, "-p", pipeline, "-o", tmp_path / "out.hlo")
    assert message in stderr.splitlines()[0]
    assert hint in stderr
    assert f"--> {pipeline}:{place}\n" in stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"passes: [\xff]", "byte 9 is not UTF-8"),
        (b"passes: " + b"[" * 20_000 + b"]" * 20_000, "nested too deeply"),
    ],
)
def test_what_is_no_yaml_text_is_refused(
    refuse: Refuse, tmp_path: Path, text: bytes, message: str
) -> None:
    pipeline = tmp_path / "pipeline.yaml"
    pipeline.write_bytes(text)
    assert message in refuse("opt", tmp_path / "out.hlo", "-p", pipeline)


def test_a_pipeline_that_contains_itself_is_refused(refuse: Refuse, tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(f"passes:\n  - pipeline: {second}\n")
    second.write_text(f"passes:\n  - dce\n  - pipeline: {first}\n")
    stderr = refuse("opt", tmp_path / "out.hlo", "-p", first)
    assert f"pipeline '{first}' contains itself" in stderr
    assert f"--> {second}:3:15" in stderr


@pytest.mark.parametrize(
    ("passes", "column", "message", "hint"),
    [
        ("dec", 1, "unknown pass 'dec'", "did you mean 'dce'?"),
        ("cse,dce{x=1}", 9, "pass 'dce' has no option 'x'", "it has "),
        ("dce{", 5, "expected the name", ""),
        ("dce)", 4, "expected ','", ""),
        ("dce cse", 5, "expected ','", ""),
        ("fixpoint(dce", 13, "expected ')'", ""),
        ("fixpoint(dce){max_iterations=0}", 15, "from 1 on", ""),
        (f"fixpoint(dce){{max_iterations={'9' * 5000}}}", 15, "from 1 on", ""),
        ("fixpoint(dce){limit=1}", 15, "no option 'limit'", "max_iterations"),
        ('call-inliner{single_call_site="a}', 31, "expected a value", ""),
        ("call-inliner{single_call_site=[[a]]}", 32, "expected a value", ""),
        ("call-inliner{single_call_site=[a,b]}", 14, 'not ["a", "b"]', ""),
        ("call-inliner{single_call_site=maybe}", 14, 'not "maybe"', ""),
        ("pipeline(simplif)", 10, "no pipeline 'simplif'", "did you mean 'simplify'?"),
        ("fixpoint(" * 1000 + "dce" + ")" * 1000, 451, "nested too deeply", ""),
    ],
)
def test_a_mistake_in_passes_text_is_shown_with_its_column(
    refuse: Refuse, tmp_path: Path, passes: str, column: int, message: str, hint: str
) -> None:
    stderr = refuse("opt", tmp_path / "out.hlo", "--passes", passes)
    assert message in stderr.splitlines()[0]
    assert hint in stderr
    assert f"--> --passes:1:{column}\n" in stderr


# -- files and options ------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["opt", "--passes", "dce"], ["memory"], ["verify"], ["run"]])
def test_a_missing_file_is_named(refuse: Refuse, tmp_path: Path, command: list[str]) -> None:
    missing = tmp_path / "missing.hlo"
    stderr = refuse(*command, missing)
    assert stderr == f"error[HLO001]: cannot read {missing}: No such file or directory\n"


@pytest.mark.parametrize(
    ("output", "message"),
    [("step.hlo/out.hlo", "is a file, not a folder"), ("step.hlo/x/out.hlo", "Not a directory")],
)
def test_an_output_below_a_file_cannot_be_written(
    refuse: Refuse, tmp_path: Path, output: str, message: str
) -> None:
    hlo = tmp_path / "step.hlo"
    hlo.write_text(GOOD)
    assert message in refuse("opt", hlo, "--passes", "dce", "-o", tmp_path / output)
    assert hlo.read_text() == GOOD


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_a_name_that_is_no_text_is_shown_escaped(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/st\xffep.hlo")
    Path(path).write_text(GOOD)
    assert main(["opt", path, "--passes", "dce", "--diff"]) == 1
    assert b"/st\\udcffep.hlo\n" in capsysbinary.readouterr().out


def test_a_dump_folder_that_cannot_be_made_is_reported(refuse: Refuse, tmp_path: Path) -> None:
    hlo = tmp_path / "step.hlo"
    hlo.write_text(GOOD)
    folder = tmp_path / "step.hlo" / "dumps"
    stderr = refuse("opt", hlo, "--passes", "dce", "--dump-dir", folder)
    assert stderr == f"error[HLO004]: cannot make folder {folder}: Not a directory\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["opt"], "no input"),
        (["opt", "FILE"], "nothing to run"),
        (["optt"], "did you mean 'opt'?"),
        (["opt", "FILE", "--passes", "dce", "--chek"], "--check"),
        (["opt", "FILE", "--passes", "dce", "--remarks", "mised"], "applied, missed, analysis"),
        (["opt", "FILE", "--passes", "dce", "--remarks", "missed:dec"], "did you mean 'dce'?"),
        (["opt", "FILE", "--passes", "dce", "--print-after", "dec"], "did you mean 'dce'?"),
        (["opt", "FILE", "--passes", "dce", "--format", "json"], "--format json needs"),
        (["opt", "FILE", "--passes", "dce", "-j", "0"], "-j"),
        (["opt", "FILE", "--repro", "FILE"], "--repro names"),
        (["opt", "--repro", "FILE"], "is no reproducer"),
        (["opt", "FOLDER", "--passes", "dce"], "no HLO files in"),
        (["opt", "FILE", "--passes", "dce", "--validate", "maybe"], "'end', 'each'"),
        (["run", "FOLDER"], "Is a directory"),
        (["equivalent", "FILE"], "Missing argument 'B'"),
        (["equivalent", "-", "-"], "only one of two modules can come from standard input"),
        (["fmt", "FILE", "-o", ""], "--output is given nothing"),
        (["memory", "FILE", "--html", ""], "--html is given nothing"),
        (["run", "FILE", "-o", ""], "--output is given nothing"),
        (["memory", "FILE", "--trace", "FILE"], "--trace would overwrite the input"),
        (["cost", "FILE", "--html", "FILE"], "--html would overwrite the input"),
        (["opt", "FILE", "-", "--passes", "dce", "-o", "FOLDER"], "standard input has no name"),
        (["diff", "-", "-"], "only one of two modules can come from standard input"),
        (["memory", "FILE", "--html", "a", "--trace", "./a"], "cannot both be written to a"),
        (["schedule", "FILE", "--html", "-", "--trace", "-"], "cannot both be written to -"),
        (["opt", "FILE", "-p", "missing.yaml"], "cannot read pipeline missing.yaml"),
        (["passes", "dec"], "did you mean 'dce'?"),
        (["pipelines", "simplfy"], "did you mean 'simplify'?"),
    ],
)
def test_wrong_usage_is_explained(
    refuse: Refuse, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "step.hlo").write_text(GOOD)
    (tmp_path / "folder").mkdir()
    names = {"FILE": str(tmp_path / "step.hlo"), "FOLDER": str(tmp_path / "folder")}
    assert message in refuse(*(names.get(argument, argument) for argument in arguments))
