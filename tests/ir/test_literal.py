"""Literals are checked against their shape and written as XLA writes them."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.literal import canonical_literal
from hloopt.ir.shape import parse_shape


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("1.0", "f32[]", "1"),
        ("-0.0", "f32[]", "-0"),
        ("-0", "f32[]", "0"),  # an integer token
        ("1e10", "f32[]", "1e+10"),
        ("0.1", "bf16[]", "0.1001"),
        ("-inf", "f32[]", "-inf"),
        ("nan", "f32[]", "nan"),
        ("true", "pred[]", "true"),
        ("1", "pred[]", "true"),
        ("255", "u8[]", "255"),
        ("(1, -2)", "c64[]", "(1, -2)"),
        ("{1,2,3}", "s32[3]", "{1, 2, 3}"),
        ("{ {1,2}, {3,4} }", "s32[2,2]", "{ { 1, 2 }, { 3, 4 } }"),
        ("{}", "s32[0]", "{}"),
        ("{...}", "f32[100]", "{...}"),
        ("(1, {2, 3})", "(s32[], s32[2])", "( 1, {2, 3} )"),
        ("()", "()", "(  )"),
    ],
)
def test_literals_are_written_as_xla_writes_them(text: str, shape: str, expected: str) -> None:
    assert canonical_literal(text, parse_shape(shape)) == expected


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("{1, 2}", "s32[3]", "expected 3 elements in dimension 0"),
        ("{1, 2, 3, 4}", "s32[2,2]", "expected 2 braces"),
        ("1", "token[]", "has no literal"),
        ("(1)", "(s32[], s32[])", "expected ',' in a tuple literal"),
        ("1", "(s32[])", "in a tuple literal"),
        ("x", "s32[]", ""),
        ("1.5", "s32[]", ""),
        ("256", "u8[]", ""),
        ("{{1}, {2}", "s32[2,1]", "the literal has 2 values"),
    ],
)
def test_wrong_literals_are_explained(text: str, shape: str, message: str) -> None:
    with pytest.raises(HloSyntaxError) as caught:
        canonical_literal(text, parse_shape(shape))
    assert message in caught.value.message


def test_a_limit_elides_larger_arrays_and_all_tuples() -> None:
    assert canonical_literal("{1, 2, 3}", parse_shape("s32[3]"), 3) == "{1, 2, 3}"
    assert canonical_literal("{1, 2, 3}", parse_shape("s32[3]"), 2) == "{...}"
    assert canonical_literal("(1)", parse_shape("(s32[])"), 10) == "{...}"


@given(st.floats(width=32, allow_nan=False))
def test_f32_values_survive_printing(value: float) -> None:
    printed = canonical_literal(repr(value), parse_shape("f32[]"))
    back = math.copysign(float(printed), -1.0 if printed.startswith("-") else 1.0)
    assert struct.pack("<f", back) == struct.pack("<f", value)


@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1, max_size=12))
def test_the_canonical_form_is_a_fixed_point(values: list[int]) -> None:
    shape = parse_shape(f"s32[{len(values)}]")
    once = canonical_literal(f"{{{','.join(map(str, values))}}}", shape)
    assert canonical_literal(once, shape) == once
    assert [int(v) for v in once.strip("{}").split(",")] == values
