"""Records that fail whatever their passes do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.conformance.harness import SUM, Edit, check, nothing

from conformance_lib.records import Record
from conformance_lib.runner import run_record
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Module


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"colour": 1}, "unknown expectation: colour"),
        ({"changed": False, "colour": 1}, "unknown expectation: colour"),
        ({"changed": False, "in": "entry"}, "unknown expectation: in"),
        ({}, "the expectation says nothing"),
        ({"after_step": 1, "changed": False}, "belongs to no step"),
        ({"equals_module": SUM, "modulo": "colour"}, "unknown in modulo: colour"),
        ({"filecheck": "CHECK: m", "print": {"print_colour": True}}, "unknown print option"),
        ({"attr": {"root": {"metadata.colour": 1}}}, "unknown field of metadata"),
        ({"attr": {"root": {"index.x": 1}}}, "unknown compound attribute"),
        ({"attr": {"root": {"index": {"a": 1}}}}, "is not supported"),
        ({"count": {"add": "about 3"}}, "neither a number nor a bound"),
    ],
)
def test_unknown_expectation_fails_the_record(expected: dict[str, Any], message: str) -> None:
    assert message in "\n".join(check(SUM, expected).failures)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"colour": 1}, "unknown record field: colour"),
        ({"also_run": {"before": [], "meanwhile": []}}, "unknown phase of also_run: meanwhile"),
        ({"config": {"use_spmd_partitioning": True}}, "has no meaning"),
        ({"options": {"policy": {"default": "x"}}}, "unknown option of dce: policy"),
        ({"options": {"api": "fly"}}, "unknown api of dce: fly"),
    ],
)
def test_unknown_field_fails_the_record(fields: dict[str, Any], message: str) -> None:
    assert message in "\n".join(check(SUM, {"changed": False}, **fields).failures)


def test_only_records_that_say_so_are_skipped() -> None:
    record = Record("a", {"id": "a", "skip": "not runnable"})
    outcome = run_record(record, lambda name, options: Edit(nothing))
    assert outcome.status == "skipped"
    assert check(SUM, {"changed": False}).status == "passed"
    assert check(SUM, {"changed": True}).status == "failed"


def test_exception_of_a_pass_fails_the_record_with_its_traceback() -> None:
    def crash(module: Module) -> bool:
        raise KeyError("lost")

    [failure] = check(SUM, {"changed": True}, edit=crash).failures
    assert "KeyError: 'lost'" in failure


def test_expected_error_is_compared() -> None:
    def refuse(module: Module) -> bool:
        raise HloVerifyError("the loop is odd")

    assert check(SUM, {"error": "odd"}, edit=refuse).failures == []
    assert check(SUM, {"error": ""}, edit=refuse).failures == []
    assert "found 'the loop is odd'" in check(SUM, {"error": "even"}, edit=refuse).failures[0]
    assert "the loop is odd" in check(SUM, {"changed": True}, edit=refuse).failures[0]


def test_wrong_claim_of_no_change_fails_the_record() -> None:
    def annotate(module: Module) -> bool:
        module.entry.root.set_attribute("metadata", '{op_name="other"}')
        return False

    assert "reports no change" in check(SUM, {"changed": False}, edit=annotate).failures[0]
