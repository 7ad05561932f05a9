"""`hloopt memory`: formats, several files, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

TEXT = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} negate(p)\n}\n"


def test_several_files_are_reported_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.hlo", "b.hlo"):
        (tmp_path / name).write_text(TEXT)
    assert main(["memory", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("peak at") == 2
    assert main(["memory", str(tmp_path), "--format", "json"]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert [Path(report["file"]).name for report in reports] == ["a.hlo", "b.hlo"]


def test_an_invalid_module_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.hlo"
    path.write_text(TEXT.replace("q = f32[4]", "q = f32[5]"))
    assert main(["memory", str(path)]) == 2
    assert f"--> {path}:5:" in capsys.readouterr().err
