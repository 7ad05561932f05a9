"""`run` and its input; the passes for tests are registered."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from tests.commands.opt.passes_for_tests import TEST_PASSES, TEXT, Run

from hloopt.cli import main
from hloopt.pass_framework.registry import PASSES


@pytest.fixture(autouse=True)
def _passes_for_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    home = ModuleType("passes_for_tests")
    for pass_class in TEST_PASSES:
        setattr(home, pass_class.__name__, pass_class)
        monkeypatch.setitem(PASSES, pass_class.name, f"passes_for_tests:{pass_class.__name__}")
    monkeypatch.setitem(sys.modules, "passes_for_tests", home)


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step.hlo"
    path.write_text(TEXT)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `hloopt opt`; returns its code, out and err."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str | Path) -> SimpleNamespace:
        code = main(["opt", *map(str, arguments)])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return call
