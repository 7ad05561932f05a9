"""Expectations that hold, and what is said of those that do not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.conformance.harness import ASYNC, LOOP, check, scene_of

from conformance_lib.expectations import mismatches
from hloopt.ir import Module

REDUCES = """
HloModule m

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY main {
  a = f32[4]{0} parameter(0)
  one = f32[4]{0} all-reduce(a), channel_id=1, replica_groups=[2,2]<=[4], to_apply=add
  two = f32[4]{0} all-reduce(one), channel_id=1, to_apply=add, constrain_layout=false
  ROOT n = f32[4]{0} negate(two)
}
"""


@pytest.mark.parametrize(
    ("expected", "failures"),
    [
        ({"attr": {"%one": {"replica_groups": [[0, 1], [2, 3]], "constrain_layout": False}}}, 0),
        ({"attr": {"%one": {"replica_groups": [[0, 2], [1, 3]]}}}, 1),
        ({"attr": {"%two": {"replica_groups": []}}}, 0),
        ({"shape_all": {"all-reduce": "f32[4]"}, "in": "entry"}, 0),
        ({"shape_all": {"all-reduce": "f32[5]"}}, 2),
        ({"channel_ids_unique": {"opcode": "all-reduce", "in": "entry"}}, 1),
        ({"channel_ids_unique": {"opcode": "negate"}}, 0),
        ({"filecheck": "CHECK: negate", "of": "entry"}, 0),
        ({"filecheck": "CHECK: %add (", "of": "entry"}, 1),
        ({"filecheck": "CHECK: negate", "of": "add"}, 1),
    ],
)
def test_collectives_are_as_expected(expected: dict[str, Any], failures: int) -> None:
    assert len(check(REDUCES, expected).failures) == failures


@pytest.mark.parametrize(
    "expected",
    [
        {"changed": False},
        {"second_run_changed": False},
        {"root_opcode": "tuple", "in": "body"},
        {"root_pattern": ["get-tuple-element", "while"], "same_instruction": ["op(0)", "op(0)"]},
        {"pattern": ["tuple", "constant", "%a"], "at": "root.op(0).op(0)"},
        {"count": {"while": 1, "constant": ">=3", "tanh": "<=0"}},
        {"pattern_count": {"pattern": ["tuple", "constant", "*"], "in": "entry", "n": 1}},
        {"instruction_count": 5, "in": "entry"},
        {
            "opcode_sequence": ["parameter", "constant", "tuple", "while", "get-tuple-element"],
            "in": "entry",
        },
        {"instr_present": ["loop", "body::x"]},
        {"instr_absent": ["nobody", "condition::x"]},
        {"same_instruction_pairs": [["root.op(0)", "%loop"]]},
        {"different_instruction_pairs": [["%a", "%zero"]]},
        {"operand_count": {"%t": 2}},
        {"user_count": {"%loop": 1, "root": 0}},
        {"computations": 3},
        {"computation_present": ["body"]},
        {"computation_absent": ["nobody"]},
        {"while_computations_unique": True},
        {"caller_count": {"body": 1, "entry": 0}},
        {"max_callers": 1},
        {"attr": {"root": {"index": 1, "metadata.op_name": "n/x", "metadata.op_type": ""}}},
        {"attr": {"root": {"metadata.stack_frame_id": "not in [1, 3]", "sharding": None}}},
        {"attr": {"%a": {"frontend_attributes.x.y": "z", "frontend_attributes": "nonempty"}}},
        {"attr": {"%loop": {"body": "body", "condition": "any", "sharding": "absent or {}"}}},
        {"attr_all": {"compare": {"direction": "LT"}}},
        {"attr_equal": ["root", "%body::x", "index"]},
        {"shape": {"%loop": "(s32[], f32[4])"}},
        {"tuple_size": {"%loop": 2}},
        {"is_tuple_shape": {"%a": False}},
        {"literal": {"%zero": 0}},
        {"parameter_count": {"entry": 1}},
        {"parameter_shapes": {"entry": ["f32[4]"]}},
        {"entry_layout_parameters": ["f32[4]{0}"]},
        {"scheduled": False},
        {"filecheck": "// CHECK: ENTRY %main\n// CHECK-NEXT: constant(0)", "print": {}},
        {"filecheck": "CHECK: %zero = constant(0)", "print": {"print_result_shape": False}},
        {"call_graph_nodes": 0, "options": {"execution_threads": ["elsewhere"]}},
        {"flattened": True},
        {"call_graph": {"body": {"depth": 1, "callers": ["main"], "context": "control_flow"}}},
        {"callsite": {"%loop": {"called": ["body", "condition"], "context": "control_flow"}}},
        {"visit_order": {"size": 3, "last": "main", "before": [["body", "main"]]}},
        {"dominates": [["entry", "body", True], ["body", "condition", False]]},
        {"nearest_ancestors_in_same_computation": [["%next.body", "%a", ["%loop", "%a"]]]},
        {"nearest_common_ancestor_instructions": [[["%a", "%zero"], ["%main::t"]]]},
        {"nearest_common_ancestor_computations": [[["body", "condition"], ["main"]]]},
        {"reachable": [["a", "loop", True], ["loop", "a", False]]},
        {"connected": [["loop", "a", True], ["a", "zero", False]]},
    ],
    ids=lambda expected: next(iter(expected)),
)
def test_expectation_holds(expected: dict[str, Any]) -> None:
    assert check(LOOP, expected).failures == []


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"changed": True}, "changed: expected True, found False"),
        ({"root_opcode": "tuple"}, "expected a root tuple, found %x"),
        ({"root_pattern": "tuple"}, "is no tuple"),
        ({"count": {"while": 2}}, "number of while: expected 2, found 1"),
        ({"instruction_count": 4, "in": "entry"}, "expected 4, found 5"),
        ({"instr_present": ["nobody"]}, "%nobody is not in the module"),
        ({"instr_absent": ["loop"]}, "%loop is in the module"),
        ({"same_instruction_pairs": [["%a", "%zero"]]}, "are two"),
        ({"different_instruction_pairs": [["%loop", "root.op(0)"]]}, "are both %loop"),
        ({"attr": {"root": {"index": 0}}}, "expected index 0, found '1'"),
        ({"attr": {"root": {"metadata.op_name": None}}}, "found 'n/x'"),
        ({"shape": {"%a": "f32[5]"}}, r"expected f32[5], found f32[4]{0}"),
        ({"user_count": {"%a": 0}}, "expected 0, found 1"),
        ({"scheduled": True}, "is_scheduled: expected True, found False"),
        ({"filecheck": "CHECK: tanh"}, "Couldn't match"),
        ({"evaluates_to": 1}, "has parameters"),
        ({"error": "bad"}, "expected an error ('bad'), the pass ran to its end"),
        ({"call_graph": {"body": {"depth": 0}}}, "depth of %body: expected 0, found 1"),
        ({"call_graph": {"body": {"height": 0}}}, "unknown fact about a node: height"),
        ({"flattened": True, "options": {"thread": 1}}, "unknown option of the call graph: thread"),
        ({"visit_order": {"before": [["main", "body"]]}}, "main is visited behind body"),
        ({"connected": [["a", "loop", False]]}, "are connected: expected False, found True"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_mismatch_says_what_was_found(expected: dict[str, Any], message: str) -> None:
    [failure] = check(LOOP, expected).failures
    assert message in failure


def test_control_predecessors_match_in_any_order() -> None:
    both = {"control_predecessors": {"%n": ["%start.0", "parameter"]}}
    assert check(ASYNC, both).failures == []
    [failure] = check(ASYNC, {"control_predecessors": {"%n": ["%a"]}}).failures
    assert "not expected" in failure


def test_start_and_done_call_the_same_computation() -> None:
    same = {"same_called_computation": [["%start.0", "%done.0"]]}
    assert check(ASYNC, same).failures == []
    different = {"different_called_computation": [["%start.0", "%done.0"]]}
    assert "both call" in check(ASYNC, different).failures[0]


SCHEDULED = """
HloModule m, is_scheduled=true
ENTRY e {
  a = f32[] parameter(0)
  b = f32[] negate(a)
  c = f32[] abs(a)
  ROOT d = f32[] add(b, c)
}
"""


def test_schedule_is_the_order_of_instructions() -> None:
    def swap(module: Module) -> bool:
        a, b, c, d = module.entry.instructions
        module.entry.reorder([a, c, b, d])
        return True

    before = {"schedule_before": [["%b", "%c"]]}
    assert check(SCHEDULED, before, {"scheduled": True}).failures == []
    assert len(check(SCHEDULED, before, {"scheduled": True}, edit=swap).failures) == 1
    same = {"equals_module": SCHEDULED, "modulo": "names"}
    assert check(SCHEDULED, same).failures == []
    assert "another opcode" in check(SCHEDULED, same, edit=swap).failures[0]
    swapped = same | {"equals_module": SCHEDULED.replace("(b, c)", "(c, b)")}
    assert "other operands" in check(SCHEDULED, swapped).failures[0]


def test_the_new_while_is_described_by_patterns() -> None:
    good = {"shape": "(s32[], f32[4])", "init": ["tuple", "*", "%a"], "cond_root": "compare"}
    assert check(LOOP, {"new_while": good}).failures == []
    bad = {"shape": "()", "init": "parameter", "body_root": "add", "cond_root": "add"}
    for key, value in bad.items():
        assert len(check(LOOP, {"new_while": {key: value}}).failures) == 1


def test_results_are_compared_between_runs_and_with_a_text() -> None:
    text = "ENTRY e { p = f32[2] parameter(0)  ROOT n = f32[2] negate(p) }"
    runs: list[int] = []

    def number(module: Module) -> bool:
        runs.append(0)
        module.entry.root.set_attribute("metadata", f'{{op_name="{len(runs)}"}}')
        return True

    assert "different results" in check(text, {"deterministic_runs": 2}, edit=number).failures[0]
    same = {"runs_equal": {"reference": {"hlo": text.replace("ROOT n", "ROOT other")}}}
    other = {"runs_equal": {"reference": {"hlo": text.replace("negate", "exponential")}}}
    assert check(text, same).failures == []
    assert "it computes something else" in check(text, other).failures[0]


def test_passes_between_precisions_may_mix_them() -> None:
    text = """ENTRY e {
  a = bf16[4] parameter(0)
  b = f32[4] parameter(1)
  ROOT s = f32[4] add(a, b)
}"""
    scene = scene_of(text)
    scene.reference = None
    assert mismatches(scene, {"verifies": True}) != []
    scene.mixes_precision = True
    assert mismatches(scene, {"verifies": True}) == []
