"""`hloopt grep`: what it prints, and what it exits with."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest

from hloopt.cli import main
from hloopt.query import parse_selector
from hloopt.reports.console.console import PageConsole
from hloopt.reports.matches.findings import find_matches
from hloopt.reports.matches.terminal import render_matches
from hloopt.text import parse_module

MODULE = """HloModule m
f {
  p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p)
}
ENTRY e {
  p = f32[8] parameter(0)
  c = f32[8] call(p), to_apply=f
  ROOT s = f32[8] sine(c), metadata={op_name="jit(f)/sin" source_file="a.py" source_line=3}
}
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "m.hlo").write_text(MODULE)
    return str(tmp_path / "m.hlo")


@pytest.mark.parametrize(
    ("selector", "names", "code"),
    [
        ("negate|sine", ["n", "s"], 0),
        ("parameter", ["p", "p.1"], 0),
        ("%n", ["n"], 0),
        ("%p", ["p", "p.1"], 2),
        ("%p.1", ["p.1"], 0),
        ("name=p", ["p"], 0),
        ("%p, in-entry", [], 1),
        ("%[ps]", None, 2),
        ("%p|%n", ["p", "n"], 0),
        ("%p*", ["p", "p.1"], 0),
        ("cosine", [], 1),
        ("%x", [], 1),
    ],
)
def test_instructions_and_exit_codes(
    path: str, selector: str, names: list[str] | None, code: int, capsys: Capture
) -> None:
    assert main(["grep", path, selector, "--format", "json"]) == code
    written = capsys.readouterr()
    if names is None:
        assert "HLO609" in written.err
        return
    [report] = json.loads(written.out)
    assert [each["name"] for each in report["instructions"]] == names
    assert report["count"] == len(names) == sum(report["opcodes"].values())
    assert report["ambiguous"] == (code == 2)
    assert main(["grep", path, selector]) == code
    page = capsys.readouterr().out
    assert all(f"%{name}" in page for name in names)
    assert ("name=NAME" in page) == (code == 2)


def test_an_instruction_has_what_its_metadata_says(path: str, capsys: Capture) -> None:
    assert main(["grep", path, "sine", "--format", "json"]) == 0
    [report] = json.loads(capsys.readouterr().out)
    assert report["instructions"] == [
        {
            "name": "s",
            "computation": "e",
            "opcode": "sine",
            "shape": "f32[8]{0}",
            "bytes": 32,
            "op_name": "jit(f)/sin",
            "source": "a.py:3",
        }
    ]


def test_counts_and_names_of_files(path: str, capsys: Capture) -> None:
    other = path.replace("m.hlo", "other.hlo")
    Path(other).write_text(MODULE.replace("sine", "cosine"))
    assert main(["grep", path, "parameter", "-c"]) == 0
    assert capsys.readouterr().out == "2\n"
    assert main(["grep", path, other, "sine", "-c"]) == 0
    assert capsys.readouterr().out == f"{path}: 1\n{other}: 0\n"
    assert main(["grep", path, other, "sine", "-l"]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert main(["grep", path, other, "tanh", "-l"]) == 1
    assert capsys.readouterr().out == ""
    assert main(["grep", path, "sine", "-c", "--format", "json"]) == 0
    assert "instructions" not in json.loads(capsys.readouterr().out)[0]


@pytest.mark.parametrize("text", ["", "HloModule m\nENTRY e {", "no HLO"])
def test_a_file_that_cannot_be_read_exits_2_and_the_rest_is_done(
    path: str, text: str, capsys: Capture
) -> None:
    broken = path.replace("m.hlo", "broken.hlo")
    Path(broken).write_text(text)
    assert main(["grep", broken, path, "sine", "-c"]) == 2
    written = capsys.readouterr()
    assert written.out == f"{path}: 1\n"
    assert "broken.hlo" in written.err


def test_a_module_that_breaks_a_rule_is_searched(path: str, capsys: Capture) -> None:
    Path(path).write_text(MODULE.replace("ROOT s = f32[8]", "ROOT s = f32[9]"))
    assert main(["grep", path, "sine", "-c"]) == 0
    assert capsys.readouterr().out == "1\n"


def test_counts_and_names_exclude_each_other(path: str, capsys: Capture) -> None:
    assert main(["grep", path, "sine", "-c", "-l"]) == 2
    assert "cannot be used together" in capsys.readouterr().err


def shown(width: int, *, is_terminal: bool) -> list[str]:
    text = MODULE.replace("ROOT s", f"ROOT {'s' * 50}").replace("f32[8] sine", "f32[1,8] bitcast")
    found = find_matches(parse_module(text), parse_selector("bitcast|negate"))
    file = StringIO()
    render_matches(found, PageConsole(width=width, force_terminal=is_terminal, file=file))
    return file.getvalue().splitlines()


def test_lines_in_a_pipe_are_whole() -> None:
    lines = shown(40, is_terminal=False)
    assert f"%{'s' * 50}  bitcast        32 B  f32[1,8]{{1,0}}  a.py:3" in lines


def test_on_a_terminal_shapes_are_cut_and_names_are_not() -> None:
    assert any("f32[1,8]{1,0}  a.py:3" in line for line in shown(120, is_terminal=True))
    lines = "\n".join(shown(40, is_terminal=True))
    assert "s" * 50 in lines
    assert "f32[8]{0}" in lines
    assert "f32[1,8]{1,0}" in lines  # no less than 16 columns
