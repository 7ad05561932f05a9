"""A compiler that compiles nothing, and a folder with a module."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compilers.fake_xla import MODULE, FakeXla, install


@pytest.fixture
def xla(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeXla:
    """The compiler that `--target h100_sxm` names; the current folder has `m.hlo`."""
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(MODULE, encoding="utf-8")
    fake = install(monkeypatch, tmp_path)
    fake.dead = "dead"
    return fake
