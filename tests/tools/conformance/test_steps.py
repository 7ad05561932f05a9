"""Steps, options, tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.tools.conformance.harness import SUM, Edit

from conformance_lib.errors import RecordError
from conformance_lib.options import pass_options
from conformance_lib.records import Record, read_table
from conformance_lib.runner import run_record
from hloopt.ir import Module, Opcode
from hloopt.text import parse_module


def test_expectations_are_checked_after_their_step() -> None:
    counts = {"cse": False, "dce": True, "tuple-simplifier": False, "call-inliner": True}
    ran: list[str] = []

    def create(name: str, options: Mapping[str, object]) -> Edit:
        def edit(module: Module) -> bool:
            ran.append(f"{name}{dict(options)}")
            return counts[name]

        return Edit(edit)

    record = {
        "id": "a",
        "pass": "dce",
        "hlo": SUM,
        "also_run": {
            "before": ["cse"],
            "after": [{"tuple-simplifier": {"execution_threads": ["main"]}}],
            "then": ["call-inliner"],
        },
        "expect": [
            {"changed": True},
            {"changed": False, "after_pass": "cse"},
            {"changed": False, "after_pass": "tuple-simplifier"},
            {"changed": True, "after_step": 1},
            {"second_run_changed": True},
        ],
    }
    assert run_record(Record("a", record), create).failures == []
    assert ran == [
        *("cse{}", "dce{}", "tuple-simplifier{'execution_threads': ('main',)}"),
        *("dce{}", "call-inliner{}"),
    ]


def test_options_in_words_become_callables() -> None:
    module = parse_module(SUM)
    call = next(module.instructions(Opcode.CALL))
    rules: list[dict[str, Any]] = [
        {"callee": ["g"], "policy": "allow_ignore_frontend_attributes"},
        {"callee_root_opcode": "negate", "policy": "allow_inline"},
    ]
    value = {"default": "prohibit_inline", "rules": rules}
    config = {"use_shardy_partitioner": True}
    options = pass_options("call-inliner", {"override_policy": value}, config)
    policy = options["override_policy"]
    assert callable(policy)
    assert policy(call) == "allow_inline"
    assert options["use_shardy"] is True
    scalar = pass_options("cse", {"should_combine_constant": "result is a scalar"}, {})
    combine = scalar["should_combine_constant"]
    assert callable(combine)
    assert combine(module.entry.root)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("call-inliner", {"override_policy": {"default": "perhaps"}}),
        ("call-inliner", {"override_policy": {"default": "allow_inline", "colour": 1}}),
        (
            "call-inliner",
            {"override_policy": {"default": "allow_inline", "rules": [{"policy": "allow_inline"}]}},
        ),
        ("cse", {"should_combine_constant": "result is red"}),
        ("flatten-call-graph", {"skip_cloning": "some"}),
    ],
)
def test_unknown_words_in_options_are_an_error(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(RecordError):
        pass_options(name, options, {})


def test_table_is_one_record_per_line(tmp_path: Path) -> None:
    table = tmp_path / "t.jsonl"
    table.write_text(json.dumps({"id": "x", "hlo": SUM}) + "\n\n" + json.dumps({"id": "y"}) + "\n")
    assert [record.id for record in read_table(table)] == ["x", "y"]
    table.write_text("[]\n")
    with pytest.raises(ValueError, match=r"t\.jsonl:1: not a record"):
        read_table(table)
