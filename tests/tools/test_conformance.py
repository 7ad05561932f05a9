"""The runner of expectation tables: selectors, patterns, expectations, and that it is strict."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import conformance
from conformance_lib.errors import RecordError
from conformance_lib.known_differences import DIFFERENCES, Difference
from conformance_lib.literals import constant_value, evaluate
from conformance_lib.options import pass_options
from conformance_lib.patterns import mismatch
from conformance_lib.records import Record, read_table
from conformance_lib.runner import Outcome, run_record
from conformance_lib.scene import Scene
from conformance_lib.selectors import find_computation, select, select_one
from conformance_lib.source_names import SourceNames
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.text import parse_module

LOOP = """
HloModule m

condition {
  p = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}

body (p: (s32[], f32[4]{0})) -> (s32[], f32[4]{0}) {
  p = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4]{0} get-tuple-element(p), index=1
  next.body = s32[] add(i, s32[] constant(1))
  ROOT t = (s32[], f32[4]{0}) tuple(next.body, x)
}

ENTRY main {
  a = f32[4]{0} parameter(0), frontend_attributes={note={n = 1}, x.y="z"}
  zero = s32[] constant(0)
  t = (s32[], f32[4]{0}) tuple(zero, a)
  loop = (s32[], f32[4]{0}) while(t), condition=condition, body=body
  ROOT x = f32[4]{0} get-tuple-element(loop), index=1, metadata={op_name="n/x" stack_frame_id=2}
}
"""

ASYNC = """
ENTRY main {
  a = f32[4]{0} parameter(0)
  b = f32[4]{0} parameter(1)
  start.0 = ((f32[4]{0}, f32[4]{0}), f32[4]{0}) add-start(a, b)
  done.0 = f32[4]{0} add-done(start.0)
  ROOT n = f32[4]{0} negate(done.0), control-predecessors={a, start.0}
}
"""


def scene_of(text: str) -> Scene:
    module = parse_module(text)
    return Scene(module, SourceNames(module), lambda: False, changed=False)


class Edit:
    """A pass that does what a function does."""

    def __init__(self, edit: Callable[[Module], bool]) -> None:
        self.edit = edit

    def run(self, module: Module, context: PassContext) -> bool:
        return self.edit(module)


def nothing(module: Module) -> bool:
    return False


def check(
    text: str, *expected: Mapping[str, Any], edit: Callable[[Module], bool] = nothing, **fields: Any
) -> Outcome:
    """The outcome of a record whose passes all do `edit`."""
    fields = {"id": "a", "pass": "some-pass", "hlo": text, "expect": list(expected)} | fields
    return run_record(Record("a", fields), lambda name, options: Edit(edit))


# -- names and selectors ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "computation", "opcode"),
    [
        ("root", "main", "get-tuple-element"),
        ("root(body)", "body", "tuple"),
        ("%t", "main", "tuple"),
        ("%x", "main", "get-tuple-element"),
        ("%body::x", "body", "get-tuple-element"),
        ("%next.body", "body", "add"),
        ("%next.body.op(1)", "body", "constant"),
        ("%loop.body", "body", "tuple"),
        ("%loop.cond.op(0)", "condition", "get-tuple-element"),
        ("%loop.called(1)", "condition", "compare"),
        ("find(constant)", "condition", "constant"),
        ("find(constant@entry)", "main", "constant"),
        ("find(add@body(find(while@entry)))", "body", "add"),
        ("%a.user(0).user(-1)", "main", "while"),
        ("root.op(-1)", "main", "while"),
        ("%root.op(0)", "main", "while"),
    ],
)
def test_selector_leads_to_an_instruction(selector: str, computation: str, opcode: str) -> None:
    found = select_one(scene_of(LOOP), selector)
    assert (found.parent.name, found.opcode.value) == (computation, opcode)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("%nobody", "%nobody is not in the module"),
        ("%p", "'p' is defined several times"),
        ("root.op(1)", r"\.op\(1\) leads nowhere"),
        ("root.body", r"\.body leads nowhere"),
        ("find(tanh)", "there is no tanh in the module"),
        ("find(no-such)", "there is no opcode 'no-such'"),
        ("root(elsewhere)", "computation %elsewhere is not in the module"),
        ("somewhere", "'somewhere' is not the base of a selector"),
        ("root.operand(0)", "is not the base of a selector"),
    ],
)
def test_selector_that_leads_nowhere_is_an_error(selector: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        select_one(scene_of(LOOP), selector)


def test_all_selects_each_instruction_with_the_opcode() -> None:
    scene = scene_of(LOOP)
    assert len(select(scene, "all(get-tuple-element)")) == 4
    assert len(select(scene, "all(get-tuple-element@called(%loop,0))")) == 2


def test_async_operations_are_found_by_their_sugar() -> None:
    scene = scene_of(ASYNC)
    assert select_one(scene, "find(add-start)").name == "start.0"
    assert select_one(scene, "%done.0.async").opcode is Opcode.ADD


def test_replaced_instruction_is_found_by_its_name() -> None:
    scene = scene_of("ENTRY e { a = f32[] parameter(0)  ROOT n = f32[] negate(a) }")
    old = scene.module.entry.root
    new = scene.module.entry.add(Opcode.ABS, old.shape, old.operands)
    old.replace_all_uses_with(new)
    old.parent.remove(old)
    with pytest.raises(RecordError, match="%n is not in the module any more"):
        scene.find("n")
    new.name = "n"
    assert scene.find("n") is new


def test_computations_are_found_by_name_and_by_caller() -> None:
    scene = scene_of(LOOP)
    names = ["entry", "body", "body(%loop)", "cond(%loop)", "called(%loop,1)"]
    found = [find_computation(scene, name).name for name in names]
    assert found == ["main", "body", "body", "condition", "condition"]


# -- collectives --------------------------------------------------------------------------------

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


# -- patterns -----------------------------------------------------------------------------------

PATTERNS = """
ENTRY e {
  a = f32[2,3]{1,0} parameter(0)
  b = f32[2,3]{0,1} parameter(1)
  c = f32[] constant(2.5)
  s = f32[2,3]{1,0} add(a, b)
  k = f32[2,3]{1,0} custom-call(s, c), custom_call_target="T"
  ROOT u = pred[2,3]{1,0} compare(k, a), direction=LT
}
"""


@pytest.mark.parametrize(
    ("at", "pattern"),
    [
        ("%s", "*"),
        ("%s", "add"),
        ("%s", "%s"),
        ("%s", ["add", "%a", "parameter"]),
        ("%s", ["add", "%b", "%a", {"commutative": True}]),
        ("%s", ["add", "..."]),
        ("%s", ["*", "%a", "..."]),
        ("%b", ["parameter", {"index": 1, "shape": "f32[2,3]"}]),
        ("%b", ["parameter", {"shape": "f32[2,3]{0,1}", "name": "b"}]),
        ("%c", ["constant", {"literal": 2.5}]),
        ("%k", ["custom-call", ["add", "*", "*"], "constant", {"custom_call_target": "T"}]),
        ("%u", ["compare", {"direction": "LT"}]),
    ],
)
def test_pattern_matches(at: str, pattern: Any) -> None:
    scene = scene_of(PATTERNS)
    assert mismatch(scene, pattern, select_one(scene, at)) is None


@pytest.mark.parametrize(
    ("at", "pattern", "reason"),
    [
        ("%s", "multiply", "is no multiply"),
        ("%s", "%k", "is not %k"),
        ("%s", ["add"], "has not 0 operands"),
        ("%s", ["add", "%a"], "has not 1 operands"),
        ("%s", ["add", "*", "*", "*", "..."], "has not at least 3 operands"),
        ("%s", ["add", "%b", "%a"], "is not %b"),
        ("%s", ["add", "%a", "%a", {"commutative": True}], "is not %a"),
        ("%b", ["parameter", {"shape": "f32[2,3]{1,0}"}], "does not have shape"),
        ("%c", ["constant", {"literal": 2}], "does not have literal 2"),
        ("%k", ["custom-call", {"custom_call_target": "U"}], "does not have custom_call_target U"),
    ],
)
def test_pattern_mismatch_has_a_reason(at: str, pattern: Any, reason: str) -> None:
    scene = scene_of(PATTERNS)
    assert reason in (mismatch(scene, pattern, select_one(scene, at)) or "")


@pytest.mark.parametrize(
    "pattern",
    [["add", {"colour": 1}], "addd", ["add", "...", "*"], [], ["add", 3, "*"], ["add", [], "*"]],
)
def test_malformed_pattern_is_an_error(pattern: Any) -> None:
    scene = scene_of(PATTERNS)
    with pytest.raises(RecordError):
        mismatch(scene, pattern, select_one(scene, "%s"))


# -- literals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("pred[] constant(false)", False),
        ("s32[] constant(-3)", -3),
        ("f32[2,2] constant({{1, 2}, /*row*/ {3, 4.5}})", [[1, 2], [3, 4.5]]),
    ],
)
def test_literals_become_nested_lists(text: str, value: object) -> None:
    found = constant_value(parse_module(f"ENTRY e {{ ROOT c = {text} }}").entry.root)
    assert found == value


def test_sums_are_rounded_to_the_element_type() -> None:
    text = "ENTRY e { a = f32[] constant(0.1)  ROOT s = f32[] add(a, f32[] constant(16777216)) }"
    assert evaluate(parse_module(text).entry) == 16777216.0
    with pytest.raises(RecordError, match="evaluating negate"):
        evaluate(parse_module("ENTRY e { ROOT n = f32[] negate(f32[] constant(1)) }").entry)


# -- expectations -------------------------------------------------------------------------------


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
        ({"evaluates_to": 1}, "evaluating parameter is not supported"),
        ({"error": "bad"}, "expected an error ('bad'), the pass ran to its end"),
        ({"call_graph": {"body": {"depth": 0}}}, "depth of %body: expected 0, found 1"),
        ({"call_graph": {"body": {"height": 0}}}, "unknown about a node: height"),
        ({"flattened": True, "options": {"thread": 1}}, "unknown options of the call graph"),
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


# -- equal modules ------------------------------------------------------------------------------

SUM = """HloModule m, entry_computation_layout={(f32[])->f32[]}

%f (q: f32[]) -> f32[] {
  %q = f32[] parameter(0)
  ROOT %n = f32[] negate(%q), metadata={op_name="n"}
}

ENTRY %e (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %y = f32[] call(%p), to_apply=%f
  %c = f32[] constant(1)
  ROOT %s = f32[] add(%y, %c)
}
"""


@pytest.mark.parametrize(
    ("old", "new", "modulo"),
    [
        ("", "", "nothing: this is the exact text"),
        ("%q", "%other", "instruction names"),
        ("%f", "%g", "computation names"),
        ("constant(1)", "constant(1.0)", "ids"),
        (', metadata={op_name="n"}', "", "metadata"),
    ],
)
def test_modules_are_equal_modulo_what_is_listed(old: str, new: str, modulo: str) -> None:
    other = SUM.replace(old, new) if old else SUM
    expected = {"equals_module": other, "modulo": modulo}
    assert check(SUM, expected).failures == []
    if new or old:
        strict = expected | {"modulo": "backend_config"}
        assert bool(check(SUM, strict).failures) == (modulo != "ids")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("negate", "abs", "another opcode"),
        ("constant(1)", "constant(2)", "another value in parentheses"),
        ("add(%y, %c)", "add(%y, %c), control-predecessors={%p}", "other control predecessors"),
        ('op_name="n"', 'op_name="m"', "expected attributes"),
        ("  %c = f32[] constant(1)\n", "", "unknown operand"),
    ],
)
def test_difference_of_modules_is_named(old: str, new: str, message: str) -> None:
    outcome = check(SUM, {"equals_module": SUM.replace(old, new), "modulo": "names"})
    assert message in "\n".join(outcome.failures)


def test_exact_text_is_compared_line_by_line() -> None:
    expected = {"equals_module": SUM, "modulo": "nothing: exact", "exact_text": True}
    assert check(SUM.replace("%", ""), expected).failures == []
    spaced = expected | {"equals_module": SUM.replace("(%y, %c)", "(%y,  %c)")}
    assert "of the print: expected" in check(SUM, spaced).failures[0]


# -- strictness ---------------------------------------------------------------------------------


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
        ({"options": {"policy": {"default": "x"}}}, "no meaning is known"),
        ({"options": {"api": "fly"}}, "unknown api fly"),
    ],
)
def test_unknown_field_fails_the_record(fields: dict[str, Any], message: str) -> None:
    assert message in "\n".join(check(SUM, {"changed": False}, **fields).failures)


def test_only_records_that_say_so_are_skipped() -> None:
    record = Record("a", {"id": "a", "skip": "not runnable"})
    outcome = run_record(record, lambda name, options: Edit(nothing))
    assert outcome.status == "skipped"
    assert check(SUM).status == "passed"
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


# -- steps, options, tables ---------------------------------------------------------------------


def test_expectations_are_checked_after_their_step() -> None:
    counts = {"first": False, "main": True, "second": False, "third": True}
    ran: list[str] = []

    def create(name: str, options: Mapping[str, object]) -> Edit:
        def edit(module: Module) -> bool:
            ran.append(f"{name}{dict(options)}")
            return counts[name]

        return Edit(edit)

    record = {
        "id": "a",
        "pass": "main",
        "hlo": SUM,
        "also_run": {"before": ["first"], "after": [{"second": {"k": [1]}}], "then": ["third"]},
        "expect": [
            {"changed": True},
            {"changed": False, "after_pass": "first"},
            {"changed": False, "after_pass": "second"},
            {"changed": True, "after_step": 1},
            {"second_run_changed": True},
        ],
    }
    assert run_record(Record("a", record), create).failures == []
    assert ran == ["first{}", "main{}", "second{'k': (1,)}", "main{}", "third{}"]


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


def test_names_of_instructions_follow_the_text() -> None:
    module = parse_module(LOOP)
    names = SourceNames(module)
    found = names.find("x")
    assert found is not None
    assert isinstance(found.instruction, Instruction)
    assert found.instruction is module.entry.root
    assert names.find("constant") is None


# -- the command --------------------------------------------------------------------------------


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
    assert "FAIL odd\n  error[HLO601]: unknown pass 'no-such'" in output
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
