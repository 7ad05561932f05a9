"""Unexpected exceptions end with one line, exit code 70, and a report file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hloopt.cli import main
from hloopt.text import print_module

TEXT = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  dead = f32[4] negate(x)
  ROOT y = f32[4] add(x, x)
}
"""


def test_an_unexpected_exception_is_a_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import hloopt.verifier

    def broken(*_: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(hloopt.verifier, "verify_module", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "m.hlo").write_text(TEXT)
    assert main(["verify", str(tmp_path / "m.hlo")]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    found = re.fullmatch(
        r"error\[HLO900\]: a defect of hloopt: IndexError: list index out of range \(.*\.py:\d+\)\n"
        r" *= help: report it with (\S+) and the input\n",
        err,
    )
    assert found is not None, err
    report = Path(found[1]).read_text()
    assert f"command: hloopt verify {tmp_path / 'm.hlo'}" in report
    assert "Traceback" in report
    assert "in broken" in report


def test_a_report_that_cannot_be_written_is_no_further_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hloopt.defects import as_defect

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    defect = as_defect(ValueError(), ["opt", "a b.hlo"])
    assert defect.message == "a defect of hloopt: ValueError"
    assert defect.help == "report it with the input"


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (TEXT.replace("add(x, x)", "add(x, gone)"), "unknown operand"),
        (TEXT.replace("f32[4] add", "f32[5] add"), "shape"),
    ],
    ids=["unreadable", "invalid"],
)
def test_what_cannot_be_read_again_is_not_written(
    written: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    true_print = print_module
    calls: list[str] = []

    def broken(*arguments: object) -> str:
        calls.append(true_print(*arguments))  # type: ignore[arg-type]  # arguments of print
        return calls[0] if len(calls) == 1 else written

    monkeypatch.setattr("hloopt.driver.print_module", broken)
    (tmp_path / "m.hlo").write_text(TEXT)
    output = tmp_path / "out.hlo"
    assert main(["opt", str(tmp_path / "m.hlo"), "--passes", "dce", "-o", str(output)]) == 70
    assert not output.exists()
    err = capsys.readouterr().err
    assert "error[HLO900]: the result cannot be read again: " in err
    assert reason in err


def test_a_late_bound_chain_is_written_in_one_form(tmp_path: Path) -> None:
    """`%p` of the entry gets another name, so that one of three instructions is written anew."""
    (tmp_path / "m.hlo").write_text("""HloModule m

f {
  p = f32[4]{0} parameter(0)
  ROOT n = f32[4]{0} abs(p)
}

ENTRY e {
  p = f32[4]{0} parameter(0)
  dead = f32[4]{0} negate(p)
  s = ((), (), s32[]) call-start(), to_apply=f
  u = ((f32[4]{0}), (), s32[]) call-update(s, p)
  ROOT d = f32[4]{0} call-done(u)
}
""")
    output = tmp_path / "out.hlo"
    assert main(["opt", str(tmp_path / "m.hlo"), "--passes", "dce", "-o", str(output)]) == 0
    assert main(["verify", str(output)]) == 0
    steps = re.findall(r"(\w+-(?:start|update|done))\(", output.read_text())
    assert {step.partition("-")[0] for step in steps} in ({"call"}, {"async"})
    assert main(["run", str(output)]) == 0
    assert main(["equivalent", str(tmp_path / "m.hlo"), str(output)]) == 0
    assert main(["memory", str(output)]) == 0
