"""`hloopt equivalent --global`: exit codes and messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import paths_of

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]


def test_both_sides_of_the_partitioner_are_equal(capsys: Capture) -> None:
    assert main(["equivalent", "--global", *paths_of("gathered"), "--seeds", "1"]) == 0
    assert "equal: 1 output" in capsys.readouterr().out


def test_a_difference_is_found(tmp_path: Path, capsys: Capture) -> None:
    before, after = paths_of("remat")
    text = Path(after).read_text().replace(" add(%", " subtract(%", 1)
    (tmp_path / "wrong.hlo").write_text(text)
    assert main(["equivalent", "--global", before, str(tmp_path / "wrong.hlo")]) == 1
    assert "elements differ on device" in capsys.readouterr().out


def test_the_same_side_twice_is_refused(tmp_path: Path, capsys: Capture) -> None:
    before, _ = paths_of("gathered")
    assert main(["equivalent", "--global", before, before]) == 1
    assert "where its sharding makes it" in capsys.readouterr().out
