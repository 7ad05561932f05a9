"""Expectations about attributes, layouts, element types: one that holds, one that does not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.conformance.harness import check

TEXT = """
HloModule m
ENTRY e {
  a = f32[8,4]{1,0:T(8,128)S(1)} parameter(0)
  b = bf16[8,4]{0,1} parameter(1)
  z = f32[] constant(0)
  many = f32[2] constant({inf, 1})
  one = f16[1,1] constant({{1.001}})
  s = f32[4,2]{1,0} slice(a), slice={[0:8:2], [1:3]}
  p = f32[9,4]{1,0} pad(a, z), padding=1_0x-1_0_1
  l = f32[1,2,8,8] parameter(2)
  r = f32[3,3,2,4] parameter(3)
  c = f32[1,4,8,8] convolution(l, r), window={size=3x3 pad=1_1x0_2 rhs_reversal=1x0},
    dim_labels=bf01_01io->bf01, operand_precision={high,default}
  t = f32[4,8]{1,0} transpose(a), dimensions={1,0}
  k = f32[2,8,4]{2,1,0} parameter(4)
  kt = f32[8,2,4]{2,1,0} transpose(k), dimensions={1,0,2}
  q = f32[32]{0} reshape(a)
  q2 = f32[16]{0} parameter(5)
  v = f32[4,4]{0,1} reshape(q2)
  d = f32[<=8] parameter(6)
  x = s4[8]{0:E(4)} parameter(7)
  y = f32[8,4]{1,0} convert(b)
  w = bf16[8,4]{1,0} convert(a)
  g = f32[8,8] dot(a, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bz = (bf16[8,4]{0,1}, f32[]) tuple(b, z)
  ROOT u = (f32[8,4]{1,0:T(8,128)S(1)}, (bf16[8,4]{0,1}, f32[])) tuple(a, bz)
}
"""
HOLDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"slice": {"%s": {"starts": [0, 1], "strides": {"0": 2}}}},
        {"slice": {"%s": {"limits": [8, 4]}}},
    ),
    (
        {"padding": {"%p": {"0": {"low": 1}, "rank": 2, "any_negative": True}}},
        {"padding": {"%p": {"any_interior": False}}},
    ),
    (
        {"padding": {"%p": {"1": {"interior": 1, "high": 0}}}},
        {"padding": {"%p": {"1": {"low": 1}}}},
    ),
    (
        {"window": {"%c": {"1": {"padding_high": 2, "size": 3, "window_reversal": False}}}},
        {"window": {"%c": {"0": {"stride": 2, "base_dilation": 1}}}},
    ),
    (
        {"attr_item": {"%c": {"operand_precision": {"1": "default"}}}},
        {"attr_item": {"%c": {"operand_precision": {"0": "default"}}}},
    ),
    (
        {"attr_length": {"%g": {"lhs_contracting_dims": 1, "lhs_batch_dims": 0}}},
        {"attr_length": {"%t": {"dimensions": 1}}},
    ),
    (
        {"attr": {"%t": {"dimensions": "in [{0,1}, {1,0}]"}}},
        {"attr": {"%c": {"dim_labels": "in [a, b]"}}},
    ),
    (
        {"attr": {"%t": {"sharding": "{}", "backend_config": {}}}},
        {"attr": {"%t": {"dimensions": {}}}},
    ),
    ({"attr_differ": ["%t", "%kt", "dimensions"]}, {"attr_differ": ["%t", "%t", "dimensions"]}),
    ({"layout": {"%a": "{1,0:T(8,128)S(1)}"}}, {"layout": {"%b": "{1,0}"}}),
    ({"layout_equal": [["%s", "%p"]]}, {"layout_equal": [["%a", "%p"]]}),
    ({"layout_tiles": {"%a": 1, "%b": 0}}, {"layout_tiles": {"%a": 0}}),
    ({"element_type": {"%b": "bf16", "%u{1,0}": "bf16"}}, {"element_type": {"%u{0}": "bf16"}}),
    ({"outputs_bf16": {"%w": True, "%z": False}}, {"outputs_bf16": {"%y": True}}),
    ({"memory_space": {"%a": 1, "%u{0}": 1, "%b": 0}}, {"memory_space": {"%u{1,0}": 1}}),
    (
        {"memory_space_count": {"of": ["%a", "%b"], "memory_space": 1, "n": ">=1"}},
        {"memory_space_count": {"of": ["%a", "%b"], "memory_space": 1, "n": 2}},
    ),
    (
        {"memory_space_done_count": {"opcodes": ["parameter"], "memory_space": 1, "n": 1}},
        {"memory_space_done_count": {"opcodes": ["copy-done"], "memory_space": 1, "n": 1}},
    ),
    ({"no_alternate_memory": ["%b"]}, {"no_alternate_memory": ["%t"]}),
    (
        {"entry_layout_memory_space": {"parameter 0": 1}},
        {"entry_layout_memory_space": {"parameter 1": 1}},
    ),
    ({"rank": {"%a": 2}}, {"rank": {"%z": 1}}),
    ({"shape_dynamic": {"%d": {"0": True}}}, {"shape_dynamic": {"%a": {"1": True}}}),
    (
        {"tuple_element_dimensions": {"%u": {"0": [8, 4]}}},
        {"tuple_element_dimensions": {"%u": {"0": [8]}}},
    ),
    ({"tuple_size_difference": ["%u", "%u", 0]}, {"tuple_size_difference": ["%u", "%u", 1]}),
    ({"dimensions": {"%a": [8, "*"], "%l": [1, "..."]}}, {"dimensions": {"%a": [8]}}),
    (
        {"pattern": ["dot", {"lhs_contracting_dims": [1]}], "at": "%g"},
        {"pattern": ["dot", {"rhs_contracting_dims": [1]}], "at": "%g"},
    ),
    (
        {"pattern": ["*", {"element_type": "f16", "element": 1}], "at": "%one"},
        {"pattern": ["*", {"element": 2}], "at": "%one"},
    ),
    (
        {"pattern": ["*", {"literal": ["inf", 1]}], "at": "%many"},
        {"pattern": ["*", {"element": "any"}], "at": "%many"},
    ),
    (
        {"pattern": ["*", {"scalar": True, "tuple": False}], "at": "%z"},
        {"pattern": ["*", {"tuple": False}], "at": "root"},
    ),
    (
        {"pattern": ["*", {"operand_count": 2}], "at": "%p"},
        {"pattern": ["*", {"operand_count": 1}], "at": "%p"},
    ),
    (
        {"pattern": ["*", {"memory_space": 1}], "at": "%a"},
        {"pattern": ["*", {"memory_space": 1}], "at": "%b"},
    ),
    (
        {"pattern": ["*", {"attr": {"dimensions": "any"}}], "at": "%t"},
        {"pattern": ["*", {"attr": {"dimensions": None}}], "at": "%t"},
    ),
    (
        {"pattern": ["any of", "add", "dot"], "at": "%g"},
        {"pattern": ["any of", "add", ["dot", "*"]], "at": "%g"},
    ),
    ({"not_pattern": ["dot", "%b", "*"], "at": "%g"}, {"not_pattern": "dot", "at": "%g"}),
    ({"literal": {"%one": [[1]]}}, {"literal": {"%z": 1e-3}}),
]


def name(pair: dict[str, Any]) -> str:
    return next(iter(pair))


@pytest.mark.parametrize(("true", "false"), HOLDS, ids=lambda one: name(one))
def test_expectation_holds_for_what_is_so_only(true: dict[str, Any], false: dict[str, Any]) -> None:
    assert check(TEXT, true).failures == []
    failures = check(TEXT, false).failures
    assert failures
    assert not any("unknown" in failure or "error[" in failure for failure in failures)


LAYOUTS = """
ENTRY e {{
  a = f32[8,4]{{1,0}} parameter(0)
  t = f32[8,4]{{1,0}} transpose(a), dimensions={permutation}
  ROOT r = f32[{sizes}]{layout} reshape(t)
}}
"""


def test_reshapes_and_transposes_are_looked_at_one_by_one() -> None:
    good = LAYOUTS.format(permutation="{0,1}", sizes="32", layout="{0}")
    bad = LAYOUTS.format(permutation="{1,0}", sizes="4,8", layout="{0,1}")
    for expected in ({"reshapes_are_bitcasts": True}, {"transposes_keep_last_dimension": True}):
        assert check(good, expected).failures == []
        assert len(check(bad, expected).failures) == 1
        none = "ENTRY e { ROOT p = f32[] parameter(0) }"
        assert "there is no" in check(none, expected).failures[0]


def test_element_sizes_are_those_of_small_types() -> None:
    expected = {"element_sizes_fit": True}
    assert check("ENTRY e { ROOT p = s4[8]{0:E(4)} parameter(0) }", expected).failures == []
    assert check("ENTRY e { ROOT p = s8[8]{0:E(4)} parameter(0) }", expected).failures != []
