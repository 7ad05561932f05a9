"""`hloopt analyze loops`: formats, and what it exits with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.analysis.loops.modules import NESTED

from hloopt.cli import main


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(NESTED)
    return path


def test_both_formats_have_all_loops(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "loops", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.index("%outer") < out.index("%inner")
    assert main(["analyze", "loops", str(path), "--format", "json"]) == 0
    [report] = json.loads(capsys.readouterr().out)
    assert [loop["name"] for loop in report.pop("loops")] == ["outer", "inner"]
    assert report == {"file": str(path), "module": "m", "notices": []}


@pytest.mark.parametrize("form", [[], ["--format", "json"]])
def test_a_wrong_annotation_is_found(
    path: Path, form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(NESTED.replace('{"n":"4"}', '{"n":"7"}'))
    assert main(["analyze", "loops", str(path), *form]) == 1
    assert "7" in capsys.readouterr().out
