"""tools/overlap_table.py: rows that are done come from the record, the rest is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools.overlap.steps import row, step

import overlap_table
from overlap_lib.compiler import Failed
from overlap_lib.record import Record


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three recorded steps, the last without collectives; one row is done."""
    gpu = tmp_path / "oracle" / "gpu"
    for name in ("a", "b", "single"):
        (gpu / name / "default").mkdir(parents=True)
    for name in ("a", "b"):
        (gpu / name / "default" / "before_async_creator_0.hlo.gz").touch()
    monkeypatch.setattr(overlap_table, "check_gpu_compiler", lambda shared, python: None)
    done = row("a", step(2000, 500), step(1000, 50))
    Record(tmp_path / "rows" / "rows.jsonl", "200 iterations, seed 0").add("steps", done)
    return tmp_path


def run(shared: Path, *more: str) -> int:
    save = str(shared / "rows")
    return overlap_table.main(
        ["--shared", str(shared), "--ask", "python", "--save", save, "--table", "steps", *more]
    )


def test_rows_that_are_not_done_are_named(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shared, "--done") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| a | 2.00 → 1.00 | 0.500 |")
    assert "Not made: b." in lines
    assert lines[-2] == ("200 iterations, seed 0; `make overlap-table COUNT=200` makes this table.")


def test_a_row_that_is_made_is_kept(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def reordered(folder: Path, *_: object) -> object:
        made.append(folder.name)
        return row(folder.name, step(1000, 200), step(900, 100))

    monkeypatch.setattr(overlap_table, "reordered", reordered)
    for _ in range(2):
        assert run(shared) == 0
        assert "| b | 1.00 → 0.90 |" in capsys.readouterr().out
    assert made == ["b"]
    assert run(shared, "--again") == 0
    assert made == ["b", "a", "b"]


def test_a_step_that_xla_refuses_is_named(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> object:
        raise Failed("XLA: no")

    monkeypatch.setattr(overlap_table, "reordered", refused)
    assert run(shared) == 0
    printed = capsys.readouterr()
    assert "Not made: b." in printed.out
    assert "b: XLA: no" in printed.err


def test_a_name_that_no_step_has(shared: Path) -> None:
    with pytest.raises(SystemExit):
        run(shared, "--module", "c")
