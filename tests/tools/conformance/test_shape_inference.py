"""Records about shape inference: what passes, what fails, and that nothing is ignored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import conformance
from conformance_lib.records import Record
from conformance_lib.runner import Outcome, run_record
from hloopt.pass_framework.registry import create_pass

SUM = """
ENTRY e {
  p0 = f32[4] parameter(0)
  p1 = f32[<=4] parameter(1)
  ROOT r = add(p0, p1)
}
"""
WRONG_SUM = SUM.replace("f32[<=4]", "f32[5]")
CONVERSION = """
ENTRY e {
  p0 = f32[6] parameter(0)
  ROOT r = f64[<=6] convert(p0)
}
"""
WRONG_CONVERSION = CONVERSION.replace("f64[<=6]", "f64[7]")

PIECES = {
    SUM: {"how": "parser", "opcode": "add", "operands": ["f32[4]", "f32[<=4]"]},
    WRONG_SUM: {"how": "parser", "opcode": "add", "operands": ["f32[4]", "f32[5]"]},
    CONVERSION: {"how": "verifier", "opcode": "convert", "operands": ["f32[6]"]},
    WRONG_CONVERSION: {"how": "verifier", "opcode": "convert", "operands": ["f32[6]"]},
}


def ask(text: str, expected: dict[str, Any], **fields: Any) -> Outcome:
    """The outcome of a record about the shape of ROOT in `text`."""
    record = {"id": "a", "pass": "shape-inference", "hlo": text, "expect": [expected]}
    return run_record(Record("a", record | PIECES[text] | fields), create_pass)


def shape(text: str) -> dict[str, Any]:
    return {"shape": {"root": text}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SUM, shape("f32[<=4]")),
        (SUM, shape("f32[<=4]{0}")),
        (WRONG_SUM, {"error": "incompatible"}),
        (CONVERSION, shape("f64[6]")),
        (WRONG_CONVERSION, {"error": "equal to f64[6]"}),
    ],
)
def test_the_shape_or_the_refusal_is_as_the_record_says(
    text: str, expected: dict[str, Any]
) -> None:
    outcome = ask(text, expected)
    assert (outcome.failures, outcome.remarks, outcome.status) == ([], [], "passed")


@pytest.mark.parametrize(
    ("text", "expected", "failure"),
    [
        (SUM, shape("f32[4]"), "shape of root: expected f32[4], inferred f32[<=4]{0}"),
        (SUM, shape("f32[<=4]{0:S(1)}"), "shape of root: expected f32[<=4]{0:S(1)}"),
        (SUM, {"error": "rank"}, "expected an error ('rank'), inferred f32[<=4]{0}"),
        (WRONG_SUM, shape("f32[4]"), "Binary op with incompatible shapes"),
        (CONVERSION, shape("f64[<=6]"), "expected f64[<=6], inferred f64[6]{0}"),
        (CONVERSION, {"error": ""}, "expected an error"),
        (WRONG_CONVERSION, shape("f64[6]"), "actual shape is f64[7]"),
    ],
)
def test_another_outcome_fails_the_record(
    text: str, expected: dict[str, Any], failure: str
) -> None:
    outcome = ask(text, expected)
    assert outcome.status == "failed"
    assert failure in outcome.failures[0]


def test_an_error_in_other_words_is_a_remark() -> None:
    outcome = ask(WRONG_CONVERSION, {"error": "another wording"})
    assert outcome.status == "passed"
    (remark,) = outcome.remarks
    assert remark.startswith("refused in words other than 'another wording': Expected")


@pytest.mark.parametrize(
    ("fields", "failure"),
    [
        ({"colour": 1}, "unknown record field: colour"),
        ({"how": "guess"}, "how 'guess' is neither"),
        ({"opcode": "subtract"}, "about subtract, its text add"),
        ({"operands": ["f32[4]"]}, "its text (f32[4]{0}, f32[<=4]{0})"),
        ({"operands": ["f32[4]", "f32[3]"]}, "its text (f32[4]{0}, f32[<=4]{0})"),
        ({"attributes": "dimensions={0}"}, "not in the text"),
        ({"options": {"layout_sensitive": True}}, "no meaning for shape inference"),
        ({"config": {"num_partitions": 2}}, "no meaning for shape inference"),
        ({"expect": [{"shape": {"root": "f32[4]", "%p0": "f32[4]"}}]}, "expected a shape of root"),
        ({"expect": [{"error": "", "changed": False}]}, "expected a shape of root"),
        ({"expect": []}, "the record expects nothing"),
    ],
)
def test_nothing_a_record_says_is_ignored(fields: dict[str, Any], failure: str) -> None:
    assert failure in ask(SUM, shape("f32[<=4]"), **fields).failures[0]


def test_records_of_passes_have_no_such_fields() -> None:
    (failure,) = ask(SUM, {"changed": False}, **{"pass": "dce"}).failures
    assert failure.startswith("unknown record field: how, opcode, operands")


def test_command_shows_remarks_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "shape_inference.jsonl"
    record = {"id": "a", "pass": "shape-inference", "hlo": WRONG_SUM, "expect": [{"error": "no"}]}
    table.write_text(json.dumps(record | PIECES[WRONG_SUM]))
    monkeypatch.setattr("sys.argv", ["conformance.py", str(table)])
    assert conformance.main() == 0
    assert capsys.readouterr().out == "shape_inference: 1 passed, 0 failed, 0 skipped\n"
    monkeypatch.setattr("sys.argv", ["conformance.py", str(table), "--verbose"])
    assert conformance.main() == 0
    assert "PASS a\n  refused in words other than 'no': " in capsys.readouterr().out


def test_what_the_parser_refuses_is_not_refused_by_the_rule() -> None:
    text = CONVERSION + "oops"
    pieces = PIECES[CONVERSION]
    record = {"id": "a", "pass": "shape-inference", "hlo": text, "expect": [{"error": ""}]}
    (failure,) = run_record(Record("a", record | pieces), create_pass).failures
    assert "the parser refuses the text" in failure
