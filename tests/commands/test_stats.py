"""`hloopt stats`: pages, JSON, comparisons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.checks.expecting import STEP, UNPARTITIONED

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(STEP, encoding="utf-8")
    Path("more.hlo").write_text(STEP.replace("constant(5)", "constant(6)"), encoding="utf-8")
    Path("whole.hlo").write_text(UNPARTITIONED, encoding="utf-8")


def test_a_page_has_a_table_of_each_kind(capsys: Capture) -> None:
    assert main(["stats", "step.hlo"]) == 0
    out = capsys.readouterr().out
    assert "Inventory of step" in out
    for line in ("Collectives: 3", "Custom calls: 1", "Loops: 1", "Parameters: 3, 320 B"):
        assert f"\n{line}\n" in out
    assert "all-gather  async  bf16     4       1      1     1    128 B   96 B" in out


def test_what_is_not_partitioned_is_said_to_be(capsys: Capture) -> None:
    assert main(["stats", "step.hlo", "whole.hlo"]) == 0
    out = capsys.readouterr().out
    assert "not partitioned: figures are of the whole program over 4 devices" in out
    assert out.startswith("step.hlo\n")


def test_json(capsys: Capture) -> None:
    assert main(["stats", "step.hlo", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    (in_loop,) = [row for row in found["collectives"] if row["runs"] == 5]
    assert in_loop == {
        "kind": "all-reduce",
        "form": "sync",
        "types": "f32",
        "group_size": 2,
        "groups": 2,
        "axes": "",
        "count": 1,
        "runs": 5,
        "runs_are_known": True,
        "payload": 160,
        "wire": 160,
        "sources": ["/src/model.py:12"],
        "instructions": ["in_loop"],
    }


def test_two_inventories_are_compared(capsys: Capture) -> None:
    assert main(["stats", "--diff", "step.hlo", "step.hlo"]) == 0
    assert capsys.readouterr().out == "0 figures changed\n"
    assert main(["stats", "--diff", "step.hlo", "more.hlo"]) == 1
    assert "collectives  all-reduce sync f32 2 2  runs" in capsys.readouterr().out
    assert main(["stats", "--diff", "step.hlo", "more.hlo", "--format", "json"]) == 1
    assert {"collectives", "opcodes"} <= {
        each["table"] for each in json.loads(capsys.readouterr().out)
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.hlo"], "missing.hlo"),
        (["--diff", "step.hlo"], "--diff compares two files"),
        (["--diff", "-", "-"], "only one of two modules"),
        (["--diff", "step.hlo", "none.hlo"], "none.hlo"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: Capture) -> None:
    assert main(["stats", *arguments]) == 2
    assert message in capsys.readouterr().err
