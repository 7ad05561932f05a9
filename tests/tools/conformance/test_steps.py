"""Steps, options, tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.tools.conformance.harness import SUM, Edit, nothing

from conformance_lib.errors import RecordError
from conformance_lib.options import pass_options
from conformance_lib.predicates import predicate
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
            {"changed": True, "after_step": 0},
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


PREDICATES: list[tuple[Any, list[str]]] = [
    (True, ["negate", "custom-call"]),
    (False, []),
    ({"opcodes": ["negate"]}, ["negate"]),
    ({"not_opcodes": ["negate"]}, ["custom-call"]),
    ({"custom_call_targets": ["T"]}, ["custom-call"]),
    ({"opcodes": ["negate", "custom-call"], "is_root": True}, ["custom-call"]),
]


@pytest.mark.parametrize(("value", "opcodes"), PREDICATES, ids=str)
def test_predicates_hold_for_the_instructions_they_describe(value: Any, opcodes: list[str]) -> None:
    text = """ENTRY e {
  p = f32[] parameter(0)
  n = f32[] negate(p)
  ROOT c = f32[] custom-call(n), custom_call_target="T"
}"""
    holds = predicate(value, {"is_root": lambda instruction: instruction.is_root})
    found = [i.opcode.value for i in parse_module(text).entry.instructions if holds(i)]
    assert [opcode for opcode in found if opcode != "parameter"] == opcodes


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"opcode": ["negate"]}, "did you mean 'opcodes'?"),
        ({}, "unknown predicate"),
        ({"not_opcodes": ["negate"], "opcodes": ["add"]}, "stands alone"),
        ({"opcodes": ["negate"], "is_root": False}, "not true has no meaning: is_root"),
    ],
    ids=str,
)
def test_predicates_in_other_words_are_refused(value: Any, message: str) -> None:
    with pytest.raises(RecordError, match=re.escape(message)):
        predicate(value, {"is_root": lambda instruction: instruction.is_root})


def test_excess_precision_is_an_option_of_the_passes_that_have_it() -> None:
    config = {"allow_excess_precision": False}
    assert pass_options("float-normalization", {}, config) == config
    assert pass_options("dce", {}, config) == {}


def test_float_support_is_read_as_it_is_written() -> None:
    support = {"low": "bf16", "operand": {"opcodes": ["add"]}}
    options = pass_options("float-normalization", {"float_support": support}, {})
    assert options == {"float_support": support}


def test_float_support_of_a_device_is_a_target() -> None:
    words = {"low_precision_type": "bf16", "high_precision_type": "f32"}
    device = {"support": "gpu, compute capability 9.0"}
    options = pass_options("float-normalization", {**words, **device}, {})
    assert options == {"float_support": {"low": "bf16", "high": "f32"}, "target": "h100_sxm"}
    with pytest.raises(RecordError, match="unknown float support: gpu, of tomorrow"):
        pass_options("float-normalization", {"support": "gpu, of tomorrow"}, {})


def test_options_that_are_predicates_become_functions() -> None:
    copies = pass_options("copy-insertion", {"should_skip_removal": {"opcodes": ["copy"]}}, {})
    assert callable(copies["should_skip_removal"])
    computations = pass_options("cse", {"should_eliminate_computation": False}, {})
    assert callable(computations["should_eliminate_computation"])


LIMIT = "xla_while_loop_all_reduce_dus_code_motion_max_size_bytes"


@pytest.mark.parametrize(
    ("config", "skipped"),
    [
        ({"allow_excess_precision": True}, None),
        ({"allow_excess_precision": False}, "do not look at allow_excess_precision"),
        ({"debug_options": {LIMIT: 3}}, None),
        ({"debug_options": {"xla_other": 3}}, "the debug option 'xla_other'"),
    ],
    ids=str,
)
def test_configuration_reaches_the_pass_or_skips_the_record(
    config: dict[str, Any], skipped: str | None
) -> None:
    given: list[Mapping[str, object]] = []

    def create(name: str, options: Mapping[str, object]) -> Edit:
        given.append(options)
        return Edit(nothing)

    record = {
        **{"id": "a", "pass": "while-loop-all-reduce-code-motion", "hlo": SUM},
        **{"config": config, "expect": [{"changed": False}]},
    }
    outcome = run_record(Record("a", record), create)
    assert outcome.failures == []
    assert (skipped or "") in (outcome.skip or "")
    assert (outcome.skip is None) == (skipped is None)
    if skipped is None:
        assert given == [config.get("debug_options", {})]
