"""`hloopt verify`: exit codes and places of problems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

GOOD = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} negate(p)\n}\n"
INVALID = GOOD.replace("q = f32[4]", "q = f32[5]")
MALFORMED = GOOD.replace("negate", "negat")


@pytest.mark.parametrize(
    ("texts", "exit_code", "summary"),
    [
        ([GOOD], 0, "no problem in 1 file"),
        ([GOOD, INVALID], 1, "1 problem in 2 files"),
        ([INVALID, MALFORMED], 2, "2 problems in 2 files"),
    ],
)
def test_all_problems_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], texts: list[str], exit_code: int,
    summary: str,
) -> None:  # fmt: skip
    paths = [str(tmp_path / f"{number}.hlo") for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        Path(path).write_text(text)
    assert main(["verify", *paths]) == exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(f"{summary}\n")
    assert err.count("error[HLO") == sum(text != GOOD for text in texts)
    assert main(["verify", *paths, "--format", "json"]) == exit_code
    problems = json.loads(capsys.readouterr().out)
    assert [p["line"] for p in problems] == [5 for text in texts if text != GOOD]
