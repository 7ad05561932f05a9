"""`make dumps-bench` on a small folder: what was planted is found, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import dumps_bench


def test_the_planted_host_is_found_and_the_pipeline_stage_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "dump")
    monkeypatch.setattr(sys, "argv", ["dumps_bench.py", "--folder", folder, "--files", "400"])
    assert dumps_bench.main() == 0
    assert capsys.readouterr().out.endswith("all bars are met\n")
