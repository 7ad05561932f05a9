"""`hloopt diff`: exit codes and formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

BEFORE = (
    "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} negate(p)\n}\n"
)
AFTER = BEFORE.replace("negate", "abs")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "before.hlo", tmp_path / "after.hlo"]
    for path, text in zip(paths, (BEFORE, AFTER), strict=True):
        path.write_text(text)
    return list(map(str, paths))


def test_the_exit_code_says_whether_modules_differ(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", files[0], files[0]]) == 0
    capsys.readouterr()
    assert main(["diff", *files]) == 1
    out, err = capsys.readouterr()
    assert "negate" in out
    assert err == ""


def test_json_is_valid(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *files, "--format", "json"]) == 1
    assert "negate" in json.dumps(json.loads(capsys.readouterr().out))


def test_a_file_that_cannot_be_read_is_an_error(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", files[0], files[1] + "x"]) == 2
    assert "cannot read" in capsys.readouterr().err
