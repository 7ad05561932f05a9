"""The command: totals, exit codes, differences on purpose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.tools.conformance.harness import SUM

import conformance
from conformance_lib.known_differences import DIFFERENCES, Difference


def test_command_ends_with_totals_and_fails_for_a_failed_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [
        {"id": "good", "pass": "dce", "hlo": SUM, "expect": [{"changed": False}]},
        {"id": "bad", "pass": "dce", "hlo": SUM, "expect": [{"computations": 3}]},
        {"id": "odd", "pass": "no-such", "hlo": SUM, "expect": [{"changed": False}]},
        {"id": "none", "skip": "there is no text"},
    ]
    (tmp_path / "some_pass.jsonl").write_text("\n".join(map(json.dumps, records)))
    monkeypatch.setattr("sys.argv", ["conformance.py", str(tmp_path)])
    assert conformance.main() == 1
    output = capsys.readouterr().out
    assert (
        "FAIL bad\n  computations 3: number of computations (f, e): expected 3, found 2" in output
    )
    assert "FAIL odd\n  unknown pass: no-such" in output
    assert "SKIP none: there is no text" in output
    assert output.endswith("\nsome_pass: 1 passed, 2 failed, 1 skipped\n")
    monkeypatch.setattr("sys.argv", ["conformance.py", str(tmp_path), "--id", "oo", "--verbose"])
    assert conformance.main() == 0
    assert capsys.readouterr().out == "PASS good\nsome_pass: 1 passed, 0 failed, 0 skipped\n"


def test_records_that_differ_on_purpose_do_not_count_as_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = ("differs", "agrees_now", "changed_itself")
    for id in ids:
        change = Difference("for a reason", [({"changed": True}, {"changed": False})])
        monkeypatch.setitem(DIFFERENCES, id, change)
    removes = SUM.replace("  %c =", "  %dead = f32[] negate(%p)\n  %c =")
    records = [
        {"id": "differs", "pass": "dce", "hlo": SUM, "expect": [{"changed": True}]},
        {"id": "agrees_now", "pass": "dce", "hlo": removes, "expect": [{"changed": True}]},
        {"id": "changed_itself", "pass": "dce", "hlo": SUM, "expect": [{"changed": False}]},
    ]
    assert removes != SUM
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, records)))
    monkeypatch.setattr("sys.argv", ["conformance.py", str(tmp_path)])
    assert conformance.main() == 1
    output = capsys.readouterr().out
    assert "DIFF differs: for a reason\n" in output
    assert "FAIL agrees_now\n  changed False: " in output
    assert "FAIL changed_itself\n  the known difference {'changed': True} is not in" in output
    assert output.endswith(
        "table: 0 passed, 2 failed, 0 skipped\ntable: 1 differ from XLA on purpose\n"
    )


def test_command_refuses_what_is_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["conformance.py", str(tmp_path / "missing.jsonl")])
    assert conformance.main() == 2
    assert "missing.jsonl" in capsys.readouterr().err
