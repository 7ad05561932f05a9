"""Patterns of instructions, and the values of literals."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.conformance.harness import scene_of

from conformance_lib.errors import RecordError
from conformance_lib.literals import constant_value, evaluate
from conformance_lib.patterns import mismatch
from conformance_lib.selectors import select_one
from hloopt.text import parse_module

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


def test_values_are_rounded_to_the_element_type() -> None:
    text = "ENTRY e { a = f32[] constant(0.1)  ROOT s = f32[] add(a, f32[] constant(16777216)) }"
    assert evaluate(parse_module(text).entry) == 16777216.0
    text = "ENTRY e { ROOT n = bf16[1,2] negate(bf16[1,2] constant({{1, 257}})) }"
    assert evaluate(parse_module(text).entry) == [[-1.0, -256.0]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ENTRY e { ROOT p = f32[] parameter(0) }", "%e has parameters"),
        ("ENTRY e { ROOT t = () tuple() }", "%t is not an array"),
    ],
)
def test_only_arrays_that_depend_on_nothing_have_a_value(text: str, problem: str) -> None:
    with pytest.raises(RecordError, match=problem):
        evaluate(parse_module(text).entry)
