"""`hloopt fmt`: what is written, what is said, and that comments stay."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]

UGLY = """// RUN: hloopt opt %s --passes dce

// CHECK: negate
HloModule m // the header

// what f is for
f { // opens
  // the parameter
  q = f32[] parameter(0) // behind q
  /* a block */ n = /* inside */ f32[] negate(q), metadata={op_name="a // b"}
  // the end
} // closed

ENTRY e {
  p = f32[]   parameter( 0 )
  k = f32[12] constant({1,2,3,4,5,6,7,8,9,10,11,12})
  ROOT c = f32[] call(p), to_apply=f
}
// last
"""
FORMATTED = """// RUN: hloopt opt %s --passes dce

// CHECK: negate
HloModule m, entry_computation_layout={(f32[])->f32[]}  // the header

// what f is for
%f (q: f32[]) -> f32[] {  // opens
  // the parameter
  %q = f32[] parameter(0)  // behind q
  /* a block */
  /* inside */
  ROOT %n = f32[] negate(%q), metadata={op_name="a // b"}
  // the end
}  // closed

ENTRY %e (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %k = f32[12]{0} constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  ROOT %c = f32[] call(%p), to_apply=%f
}

// last
"""


@pytest.fixture
def ugly(tmp_path: Path) -> Path:
    path = tmp_path / "ugly.hlo"
    path.write_text(UGLY)
    return path


def test_a_file_is_rewritten_once(ugly: Path, capsys: Capture) -> None:
    assert main(["fmt", str(ugly)]) == 0
    assert capsys.readouterr() == ("", "1 file reformatted\n")
    assert ugly.read_text() == FORMATTED
    assert main(["fmt", str(ugly)]) == 0
    assert capsys.readouterr() == ("", "1 file left unchanged\n")


def test_check_names_what_would_change_and_writes_nothing(ugly: Path, capsys: Capture) -> None:
    (ugly.parent / "fine.hlo").write_text(FORMATTED)
    assert main(["fmt", "--check", str(ugly.parent)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"would reformat: {ugly}\n1 file would be reformatted, 1 file already formatted\n"
    )
    assert ugly.read_text() == UGLY
    ugly.unlink()
    assert main(["fmt", "--check", str(ugly.parent)]) == 0


def test_diff_shows_what_would_change(ugly: Path, capsys: Capture) -> None:
    assert main(["fmt", "--diff", str(ugly)]) == 1
    out, _ = capsys.readouterr()
    assert "\n-  p = f32[]   parameter( 0 )\n" in out
    assert "\n+  %p = f32[] parameter(0)\n" in out
    assert ugly.read_text() == UGLY


def test_standard_input_goes_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(UGLY.encode())))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr() == (FORMATTED, "")


def test_modules_of_a_split_file_are_formatted_each(tmp_path: Path) -> None:
    path = tmp_path / "split.hlo"
    path.write_text(f"{UGLY}\n// -----\n{UGLY}")
    assert main(["fmt", str(path)]) == 0
    assert path.read_text() == f"{FORMATTED}// -----\n{FORMATTED}"


def test_a_bad_file_is_reported_and_the_others_are_formatted(ugly: Path, capsys: Capture) -> None:
    bad = ugly.parent / "bad.hlo"
    bad.write_text(UGLY.replace("negate(q)", "negat(q)"))
    assert main(["fmt", str(ugly.parent)]) == 2
    err = capsys.readouterr().err
    assert "unknown opcode 'negat'" in err
    assert err.endswith("1 file reformatted, 1 file not read\n")
    assert ugly.read_text() == FORMATTED
    assert "negat(q)" in bad.read_text()


def test_styles_that_lose_something_are_not_written_in_place(ugly: Path, capsys: Capture) -> None:
    assert main(["fmt", "--print", "short-parsable", str(ugly)]) == 2
    assert "give -o PATH" in capsys.readouterr().err
    assert ugly.read_text() == UGLY
    assert main(["fmt", "--print", "short-parsable", str(ugly), "-o", "-"]) == 0
    out = capsys.readouterr().out
    assert "\n  ROOT n = f32[] negate(q)\n" in out
    assert "constant({1, 2, 3" in out


def test_print_options_change_a_style(ugly: Path, capsys: Capture) -> None:
    arguments = ["--print-option", "print_percent=false", "--print-option", "print-metadata=false"]
    assert main(["fmt", str(ugly), "-o", "-", *arguments]) == 0
    assert "\n  ROOT n = f32[] negate(q)\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "said"),
    [("print_metdata=true", "did you mean 'print_metadata'?"), ("print_ids=1", "true or false")],
)
def test_a_wrong_print_option_is_explained(
    ugly: Path, capsys: Capture, option: str, said: str
) -> None:
    assert main(["fmt", str(ugly), "--print-option", option, "-o", "-"]) == 2
    assert said in capsys.readouterr().err


def test_opt_writes_in_a_style(ugly: Path, capsys: Capture) -> None:
    assert main(["opt", str(ugly), "--passes", "dce", "--print", "default"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("HloModule m, entry_computation_layout={(f32[])->f32[]}\n\n%f (q: f32[])")


@pytest.mark.parametrize(
    "line",
    [
        "c = f8e8m0fnu[4] constant(2)",
        "c = f32[4,2] parameter(0), sharding={devices=[9223372036854775808,2]0,1}",
    ],
)
def test_what_xla_prints_but_does_not_read_is_written_to_be_read(tmp_path: Path, line: str) -> None:
    path, output = tmp_path / "in.hlo", str(tmp_path / "out.hlo")
    path.write_text(f"HloModule m\nENTRY e {{\n  ROOT {line}\n}}\n")
    assert main(["fmt", str(path), "-o", output]) == 0
    assert main(["verify", output]) == 0
    assert main(["fmt", "--check", output]) == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--print", "fingerprint"], "print_ids=false"),
        (["--print", "module-fingerprint"], "print_ids=false"),
        (
            ["--print", "default", "--print-option", "print_result_shape=false"],
            "print_result_shape",
        ),
        (
            ["--print", "default", "--print-option", "print_operand_names=false"],
            "print_operand_nam",
        ),
        (
            ["--print", "default", "--print-option", "print_extra_attributes=false"],
            "print_extra_at",
        ),
        (["--print", "default", "--print-option", "print_full_bodies=true"], "print_full_bodies"),
        (["--print", "default", "--print-option", "compact_operands=true"], "compact_operands"),
    ],
)
@pytest.mark.parametrize("command", [["fmt"], ["opt", "--passes", "dce"]])
def test_styles_that_no_reader_takes_say_so(
    command: list[str],
    options: list[str],
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, output = tmp_path / "in.hlo", str(tmp_path / "out.hlo")
    path.write_text(CALLS)
    assert main([*command, str(path), "-o", output, *options]) == 0
    assert f"note: what is written cannot be read again: {reason}" in capsys.readouterr().err
    assert main(["verify", output]) != 0


@pytest.mark.parametrize("style", ["keep", "formatted", "default", "short-parsable", "canonical"])
def test_other_styles_are_read_again(
    style: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = tmp_path / "in.hlo", str(tmp_path / "out.hlo")
    path.write_text(CALLS)
    assert main(["fmt", str(path), "-o", output, "--print", style]) == 0
    assert "note:" not in capsys.readouterr().err
    assert main(["verify", output]) == 0


CALLS = """HloModule m

%f (a: f32[2], b: f32[2]) -> (f32[2], f32[2], f32[2], f32[2], f32[2]) {
  %a = f32[2]{0} parameter(0)
  %b = f32[2]{0} parameter(1)
  ROOT %t = (f32[2]{0}, f32[2]{0}, f32[2]{0}, f32[2]{0}, f32[2]{0}) tuple(%a, %b, %a, %b, %a)
}

ENTRY %e (x: f32[2]) -> (f32[2], f32[2], f32[2], f32[2], f32[2]) {
  %x = f32[2]{0} parameter(0)
  %y = f32[2]{0} negate(%x)
  ROOT %c = (f32[2], f32[2], f32[2], f32[2], f32[2]) fusion(%x, %y), kind=kLoop, calls=%f
}
"""
