"""Expectations that would hold whatever a pass did are refused; so are words nobody knows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.conformance.harness import LOOP, SUM, check

from conformance_lib import runner
from conformance_lib.records import Record
from conformance_lib.runner import run_record
from hloopt.pass_framework.registry import create_pass


def fail(expected: dict[str, Any], text: str = SUM) -> str:
    """The one message of a record that has to fail."""
    (failure,) = check(text, expected).failures
    return failure


def test_a_record_that_expects_nothing_is_refused() -> None:
    assert check(SUM).failures == ["the record expects nothing: any outcome would pass"]


@pytest.mark.parametrize(
    ("expected", "nothing"),
    [
        ({"attr_all": {"tanh": {"dimensions": "any"}}}, "tanh"),
        ({"shape_all": {"all-reduce": "f32[]"}, "in": "entry"}, "all-reduce"),
        ({"channel_ids_unique": {"opcode": "all-reduce"}}, "all-reduce"),
        ({"while_computations_unique": True}, "while"),
        ({"not_reachable_in_each_nonentry_computation": ["add", "tanh"]}, "add beside a tanh"),
        ({"no_unused": {"opcode": "tanh"}}, "tanh"),
        ({"reshapes_are_bitcasts": True}, "reshape"),
        ({"transposes_keep_last_dimension": True}, "transpose"),
        ({"backend_config_field_all": {"opcode": "dot", "field": "a", "value": 1}}, "dot"),
        ({"schedule_neighbours": {"dot": {"after": "add"}}}, "dot"),
        ({"called_computations_unique": ["%c"]}, "computation that %c calls"),
        ({"same_called_computation": [["%c", "%s"]]}, "computation that %c calls"),
        ({"different_called_computation": [["%c", "%s"]]}, "computation that %c calls"),
        ({"new_names_contain": ".remat"}, "new instruction"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_statement_about_all_of_nothing_is_refused(
    expected: dict[str, Any], nothing: str
) -> None:
    text = SUM.replace("HloModule m,", "HloModule m, is_scheduled=true,")
    assert f"there is no {nothing}" in fail(expected, text)


def test_no_caller_is_no_answer_about_callers() -> None:
    text = "ENTRY e { ROOT p = f32[] parameter(0) }"
    assert "there is no computation that is called" in fail({"max_callers": 1}, text)


@pytest.mark.parametrize(
    "expected",
    [
        {"count": {}},
        {"attr": {}},
        {"attr": {"%c": {}}},
        {"instr_present": []},
        {"same_instruction_pairs": []},
        {"one_of": [[]]},
        {"visit_order": {}},
        {"runs_equal": {}},
    ],
    ids=str,
)
def test_an_expectation_of_nothing_is_refused(expected: dict[str, Any]) -> None:
    assert "empty" in fail(expected) or "missing" in fail(expected)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"root_opcod": "add"}, "unknown expectation: root_opcod; did you mean 'root_opcode'?"),
        ({"root_opcode": "addd"}, "there is no opcode 'addd': unknown opcode: addd; did you mean"),
        ({"count": {"adds": 1}}, "did you mean 'add'?"),
        ({"shape": {"roots": "f32[]"}}, "'roots' is not the base of a selector"),
        ({"shape": {"find(ad)": "f32[]"}}, "there is no opcode 'ad'"),
        ({"pattern_count": {"pattern": "add", "number": 1}}, "unknown key: number"),
        ({"attr": {"%s": {"dimension": None}}}, "unknown attribute: dimension; did you mean"),
        ({"attr": {"%s": {"metadata.opname": None}}}, "did you mean 'op_name'?"),
        ({"pattern": ["add", {"litteral": 1}], "at": "%s"}, "did you mean 'literal'?"),
        ({"pattern": ["add", "*", ["*", {"sclar": True}]], "at": "%s"}, "did you mean 'scalar'?"),
        ({"slice": {"%s": {"start": [0]}}}, "did you mean 'starts'?"),
        ({"window": {"%s": {"0": {"sise": 1}}}}, "did you mean 'size'?"),
        ({"padding": {"%s": {"any_negativ": True}}}, "did you mean 'any_negative'?"),
        ({"one_of": [[{"chnged": True}]]}, "did you mean 'changed'?"),
        ({"loop_prefetches": {"some": [{"values": "x"}]}}, "did you mean 'value'?"),
        ({"element_type": {"%s": "bf15"}}, "did you mean 'bf16'?"),
        ({"changed": "yes"}, "changed: 'yes' is not true or false"),
        ({"operand_count": {"%s": "about 2"}}, "'about 2' is neither a number nor a bound"),
        ({"reachable": [["a", "b"]]}, "is not a list of 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_word_at_any_depth_is_checked(expected: dict[str, Any], message: str) -> None:
    assert message in fail(expected)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"option": {}}, "unknown record field: option; did you mean 'options'?"),
        ({"config": {"replica_counts": 2}}, "did you mean 'replica_count'?"),
        ({"also_run": {"befor": ["dce"]}}, "did you mean 'before'?"),
        ({"also_run": {"before": ["dse"]}}, "unknown pass: dse"),
        ({"options": {"use_call_analysys": True}}, "did you mean 'use_call_analysis'?"),
        ({"pass": "float-normalisation"}, "did you mean 'float-normalization'?"),
        ({"pass": "dot-merger", "options": {"queue": 1}}, "unknown option of dot-merger: queue"),
        ({"hlo_subst": [["no such text", ""]]}, "there is no 'no such text' in the text"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value),
)
def test_fields_and_options_are_checked(fields: dict[str, Any], message: str) -> None:
    assert message in "\n".join(check(SUM, {"changed": False}, **fields).failures)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"pass": "defuser"}, "hloopt has no pass 'defuser'"),
        ({"also_run": {"before": ["defuser"]}}, "hloopt has no pass 'defuser'"),
        (
            {"expect": [{"dynamic_index_tuple_elements": 1}]},
            "hloopt has nothing that answers 'dynamic_index_tuple_elements'",
        ),
        ({"hlo": None, "hlo_from": ["a_test", "B", 0]}, "the text is in XLA's sources"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value),
)
def test_what_hloopt_does_not_have_is_skipped_by_name(
    fields: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "is_missing", lambda name: name == "defuser")
    record = {"id": "a", "pass": "dce", "hlo": SUM, "expect": [{"changed": False}]} | fields
    given = {name: value for name, value in record.items() if value is not None}
    outcome = run_record(Record("a", given), create_pass)
    assert outcome.failures == []
    assert outcome.status == "skipped"
    assert reason in (outcome.skip or "")


def test_a_failure_counts_although_another_expectation_cannot_be_asked() -> None:
    outcome = check(LOOP, {"warns": "slow"}, {"changed": True})
    assert outcome.status == "failed"


def test_a_pass_is_repeated_until_it_changes_nothing() -> None:
    runs = [True, True, False]
    changed = {"changed": True}
    options = {"options": {"until_fixed_point": True}}
    outcome = check(SUM, changed, edit=lambda module: runs.pop(0), **options)
    assert (outcome.failures, runs) == ([], [])


def test_no_pass_at_all_leaves_the_text() -> None:
    none: dict[str, Any] = {"pass": "none"}
    assert check(SUM, {"root_opcode": "add"}, **none).failures == []
    assert "nothing reports" in check(SUM, {"changed": False}, **none).failures[0]


def test_hlo_subst_changes_the_text() -> None:
    fields: dict[str, Any] = {"hlo_subst": [["negate", "abs"]]}
    assert check(SUM, {"count": {"abs": 1, "negate": 0}}, **fields).failures == []
