"""Expectations about schedules, headers, operands: one that holds, one that does not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.conformance.harness import check

from hloopt.ir import Module

TEXT = """
HloModule m, is_scheduled=true, buffer_donor={ (0, {0}) },
  input_output_alias={ {0}: (1, {}, may-alias), {1}: (0, {1}, must-alias) }

f {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}

less {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  right = pred[] compare(p, q), direction=LT
  left = pred[] compare(q, p), direction=LT
  ROOT c = pred[] compare(i, j), direction=LT
}

ENTRY e {
  t = (f32[4], f32[4]) parameter(0)
  b = f32[4] parameter(1)
  a = f32[4] get-tuple-element(t), index=0, sharding={maximal device=1}
  h = f32[4] fusion(a), kind=kLoop, calls=f, sharding={maximal device=1}
  k = f32[4] custom-call(h, b), custom_call_target="T", backend_config={"queue":"2","early":true}
  l = f32[4] custom-call(k, b), custom_call_target="T", backend_config={"queue":"3"}
  cs = (f32[4]{0:S(1)}, f32[4], u32[]) copy-start(l), cross_program_prefetch_index=0
  cd = f32[4]{0:S(1)} copy-done(cs)
  unused = f32[4] abs(b), control-predecessors={a}
  ROOT u = (f32[4], f32[4]{0:S(1)}) tuple(l, cd), origin={({"l"}, {"cd"})}
}
"""
FIELD = {"opcode": "custom-call", "in": "entry"}
ALIASES = [
    {"output": "{0}", "parameter": 1, "index": "{}", "kind": "may-alias"},
    {"output": [1], "parameter": 0, "index": [1], "kind": "must"},
]
HOLDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"schedule_opcode_at": {"0": "parameter", "-1": "tuple"}},
        {"schedule_opcode_at": {"0": "abs"}},
    ),
    ({"schedule_at": [[3, ["fusion", "%a"]]], "in": "entry"}, {"schedule_at": [[-1, "abs"]]}),
    ({"schedule_adjacent": [["%a", "%h"]]}, {"schedule_adjacent": [["%h", "%a"]]}),
    ({"schedule_distance": [["%h", "%l", 2]]}, {"schedule_distance": [["%h", "%l", 1]]}),
    (
        {"schedule_distance_equal": [["%h", "%k"], ["%k", "%l"]]},
        {"schedule_distance_equal": [["%h", "%k"], ["%h", "%l"]]},
    ),
    ({"schedule_index": {"root": -1, "%t": 0}}, {"schedule_index": {"root": -2}}),
    ({"scheduled_after": {"%a": "fusion"}}, {"scheduled_after": {"%a": "abs"}}),
    (
        {"schedule_neighbours": {"copy-start": {"before": "custom-call", "after": "copy-done"}}},
        {"schedule_neighbours": {"copy-start": {"after": "abs"}}},
    ),
    (
        {"scheduled_before_first": {"pattern": "get-tuple-element", "only": ["parameter"]}},
        {"scheduled_before_first": {"pattern": "copy-start", "only": ["parameter"]}},
    ),
    ({"computation_scheduled": ["entry"]}, {"computation_scheduled": ["nobody"]}),
    ({"alias_count": 2}, {"alias_count": ">2"}),
    ({"input_output_alias": ALIASES}, {"input_output_alias": ALIASES[:1]}),
    (
        {"output_aliases": {"{0}": [1, "{}"], "{1}": "any", "{2}": None}},
        {"output_aliases": {"{0}": None}},
    ),
    ({"buffer_donor": {"(0, {0})": True, "(1, {})": False}}, {"buffer_donor": {"(0, {1})": True}}),
    (
        {"operand_opcode_count": {"root": {"custom-call": 1, "add": 0}}},
        {"operand_opcode_count": {"root": {"abs": 1}}},
    ),
    ({"no_unused": {"opcode": "custom-call"}}, {"no_unused": {"opcode": "abs"}}),
    (
        {"mirrored_expressions": [["%less::right", "%less::left"]]},
        {"mirrored_expressions": [["%less::right", "%less::c"]]},
    ),
    (
        {"backend_config_field_all": FIELD | {"field": "queue", "value": ">=1"}},
        {"backend_config_field_all": FIELD | {"field": "early", "value": True}},
    ),
    (
        {"backend_config_field_some": FIELD | {"field": "early", "value": True}},
        {"backend_config_field_some": FIELD | {"field": "queue", "value": 9}},
    ),
    (
        {
            "sharding_unique_device": {
                "in": "entry",
                "device": 1,
                "except": ["parameter", "custom-call", "copy-start", "copy-done", "abs", "tuple"],
            }
        },
        {"sharding_unique_device": {"in": "entry", "device": 1}},
    ),
    ({"original_value_fits_shape": ["root"]}, {"original_value_fits_shape": ["%a"]}),
    ({"called_count": {"%h": 1, "%a": 0}}, {"called_count": {"%h": 2}}),
    ({"called_computations_unique": ["%h"]}, {"called_computations_unique": ["%a"]}),
    ({"in_computation": {"%h": "entry", "%n": "f"}}, {"in_computation": {"%n": "e"}}),
    ({"fusion_computations": 1}, {"fusion_computations": 0}),
    ({"control_successors": {"%a": ["abs"]}}, {"control_successors": {"%a": []}}),
    ({"cross_program_prefetch_count": 1}, {"cross_program_prefetch_count": 0}),
    (
        {"pattern": ["async-copy", "%l", {"to": 1, "from": 0}], "at": "%cd"},
        {"pattern": ["async-copy", "*", {"to": 0}], "at": "%cd"},
    ),
    ({"any_of": [[{"alias_count": 9}], [{"alias_count": 2}]]}, {"any_of": [[{"alias_count": 9}]]}),
    ({"user_opcodes": {"%k": ["custom-call"]}}, {"user_opcodes": {"%k": []}}),
    ({"deterministic_runs": 2}, {"deterministic_runs": 1}),
    ({"filecheck": "CHECK: negate", "of": "f"}, {"filecheck": "CHECK: fusion", "of": "f"}),
    (
        {
            "visit_order": {"set": ["f", "e"], "last": "e"},
            "options": {"visit_unreachable_nodes": False},
        },
        {"visit_order": {"set": ["f", "e"]}},
    ),
    ({"pattern": "fusion", "at": "new(h)"}, {"pattern": "fusion", "at": "new(nobody)"}),
]


@pytest.mark.parametrize(("true", "false"), HOLDS, ids=lambda one: next(iter(one)))
def test_expectation_holds_for_what_is_so_only(true: dict[str, Any], false: dict[str, Any]) -> None:
    assert check(TEXT, true).failures == []
    failures = check(TEXT, false).failures
    assert failures
    assert not any("unknown" in failure or "error[" in failure for failure in failures)


def test_cross_program_prefetches_are_of_parameters() -> None:
    text = TEXT.replace("copy-start(l)", "copy-start(a)")
    expected = {"cross_program_prefetches": [{"parameter": 0, "index": [0]}]}
    assert check(text, expected).failures == []
    assert check(text, {"cross_program_prefetches": []}).failures != []


def test_new_names_are_those_that_were_not_there() -> None:
    def add(name: str) -> Any:
        def edit(module: Module) -> bool:
            root = module.entry.root
            clone = module.entry.add_clone(root, root.operands)
            clone.take_name(name)
            return True

        return edit

    text = "ENTRY e { a = f32[] parameter(0)  ROOT n = f32[] negate(a) }"
    expected = {"new_names_contain": ".remat"}
    assert check(text, expected, edit=add("n.remat")).failures == []
    assert "%other is new" in check(text, expected, edit=add("other")).failures[0]
    assert "no new instruction" in check(text, expected).failures[0]
    groups = {"remat_groups": {"n": 1}}
    assert check(text, groups, edit=add("n.remat")).failures == []
    assert check(text, groups, edit=add("m.remat")).failures != []


def test_an_expectation_without_a_schedule_is_refused() -> None:
    text = "ENTRY e { ROOT a = f32[] parameter(0) }"
    for expected in ({"schedule_index": {"root": 0}}, {"schedule_opcode_at": {"0": "parameter"}}):
        assert "has no schedule" in check(text, expected).failures[0]
