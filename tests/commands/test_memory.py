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


@pytest.mark.parametrize(("limit", "code"), [("32", 0), ("31", 1), ("1GiB", 0)])
def test_a_module_that_needs_more_than_the_limit_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], limit: str, code: int
) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(TEXT)
    assert main(["memory", str(path), "--limit", limit]) == code
    assert ("RESOURCE_EXHAUSTED, 1 B too much" in capsys.readouterr().out) is bool(code)
    assert main(["memory", str(path), "--limit", limit, "--format", "json"]) == code
    assert json.loads(capsys.readouterr().out)[0]["fits"] is not bool(code)


def test_the_limit_may_be_the_memory_of_a_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(TEXT)
    assert main(["memory", str(path), "--target", "h100_sxm"]) == 0
    assert "fits: it needs 32 B of" in capsys.readouterr().out
    assert main(["memory", str(path), "--target", "h100_sxm", "--limit", "1GiB"]) == 2
    assert main(["memory", str(path), "--limit", "much"]) == 2


def test_the_rules_of_a_backend_can_be_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(TEXT)
    assert main(["memory", str(path), "--backend", "gpu", "--allocations", "2"]) == 0
    out = capsys.readouterr().out
    assert "on gpu" in out
    assert "2 allocations, the largest first" in out
