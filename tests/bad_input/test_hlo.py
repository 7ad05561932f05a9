"""Mistakes in HLO text: each is refused with its place and a hint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.bad_input.refusals import GOOD, Refuse

from hloopt.cli import main
from hloopt.diagnostics import HloError, HloSyntaxError, render_error
from hloopt.text import parse_module


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message", "hint"),
    [
        ("negate(p)", "negat(p)", 11, 20, "unknown opcode 'negat'", "did you mean 'negate'?"),
        ("add(c, c)", "add(c, dea)", 12, 29, "unknown operand '%dea'", "did you mean '%dead'?"),
        ("dead =", "c =", 11, 3, "instruction '%c' is defined twice", ""),
        ("ENTRY main", "double", 8, 1, "computation '%double' is defined twice", ""),
        ("negate(p)", "negate(r)", 11, 27, "unknown operand '%r'", "defined at line 12"),
        ("to_apply=double", "to_apply=dubble", 10, 35, "'%dubble'", "did you mean '%double'?"),
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
