"""`hloopt cost`: formats, targets, pages, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

TEXT = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} negate(p)\n}\n"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    return path


def test_several_files_are_reported_one_after_the_other(
    module: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module.with_name("n.hlo").write_text(TEXT)
    assert main(["cost", str(module.parent)]) == 0
    assert capsys.readouterr().out.count("least time  ") == 2
    assert main(["cost", str(module.parent), "--format", "json", "--by", "opcode"]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert [Path(report["file"]).name for report in reports] == ["m.hlo", "n.hlo"]
    assert [report["flops"] for report in reports] == [4, 4]


def test_the_target_is_a_choice(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", str(module), "--target", "mi300x"]) == 0
    assert "on AMD Instinct MI300X" in capsys.readouterr().out
    assert main(["cost", str(module), "--target", "mi300"]) == 2
    assert "did you mean 'mi300x'?" in capsys.readouterr().err


def test_the_page_is_written(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = module.with_name("page.html")
    assert main(["cost", str(module), "--html", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    out, err = capsys.readouterr()
    assert "least time" in out
    assert err == f"wrote {page}\n"
    assert main(["cost", str(module), "--html", "-"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (page.read_text(encoding="utf-8"), "")


def test_the_page_is_for_one_file(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module.with_name("n.hlo").write_text(TEXT)
    page = module.with_name("page.html")
    assert main(["cost", str(module.parent), "--html", str(page)]) == 2
    assert "--html is for one file, not 2" in capsys.readouterr().err
    assert not page.exists()


def test_an_invalid_module_is_an_error(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module.write_text(TEXT.replace("q = f32[4]", "q = f32[5]"))
    assert main(["cost", str(module)]) == 2
    assert f"--> {module}:5:" in capsys.readouterr().err
