"""Literals are checked against their shape and written as XLA writes them."""

from __future__ import annotations

import math
import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.literals.literal import canonical_literal, check_literal
from hloopt.ir.literals.literal_bits import float_code, float_texts
from hloopt.ir.literals.literal_values import float_text
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.shape_parser import parse_shape


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


_PIECES = st.sampled_from(
    (
        *("0", "1", "-1", "9", "99", "12", "1.5", "1.", ".5", "1e5", "2e+30", "1e-300", "3e38"),
        *("9999", "65504", "300", "999999999", "4294967295", "true", "e", "-", "nan", "...", "1_0"),
    )
)


@settings(max_examples=400)
@given(
    st.sampled_from(("pred", "s8", "u8", "s16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32")),
    st.sampled_from(((60,), (30, 2), (2, 30), (0,), (60, 0), (5, 3, 4))),
    st.data(),
)
def test_long_literals_are_read_the_same_at_a_look_and_one_by_one(
    kind: str, dimensions: tuple[int, ...], data: st.DataObject
) -> None:
    """The fast way agrees with the slow one, which reads the same values behind a comment."""
    one, other = data.draw(_PIECES), data.draw(_PIECES)
    comma = data.draw(st.sampled_from((", ", ",", " ,")))

    def spell(sizes: tuple[int, ...]) -> str:
        inner = [spell(sizes[1:]) if sizes[1:] else one for _ in range(sizes[0])]
        return "{" + comma.join(inner) + "}"

    text = spell(dimensions)
    place = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 2))
    text = (
        text[:place] + data.draw(st.sampled_from(("", other, "{", "}", ","))) + text[place + cut :]
    )
    text = text + " " * 200  # longer than what is remembered
    shape = parse_shape(f"{kind}[{','.join(map(str, dimensions))}]")
    results = []
    for spelled in (text, text + "/**/"):
        try:
            check_literal(spelled, shape)
            results.append(canonical_literal(spelled, shape))
        except HloSyntaxError:
            results.append("refused")
    assert results[0] == results[1]


def test_elements_without_a_value_are_the_smallest_scale_where_there_is_no_zero() -> None:
    shape = parse_shape("f8e8m0fnu[3]")
    text = canonical_literal("1", shape)
    assert text == "{1, 5.877471754111438e-39, 5.877471754111438e-39}"
    assert canonical_literal(text, shape) == text


_SMALL_FLOATS = [e.name for e in ELEMENT_TYPES.values() if e.is_floating and e.bits <= 8]
_TOKENS = ("1e-300", "1e-45", "5.9e-39", "1", "nan", "-nan", "0.1")
_NOT_OF_SCALES = ("0", "-0.0", "-1e-300")


@pytest.mark.parametrize(
    ("name", "token"),
    [
        (name, token)
        for name in _SMALL_FLOATS
        for token in (*_TOKENS, *(() if name == "f8e8m0fnu" else _NOT_OF_SCALES))
    ],
)
def test_what_a_small_number_is_printed_as_has_bits_and_is_read_as_these(
    name: str, token: str
) -> None:
    code = float_code(name)(float_text(token, name))
    (again,) = float_texts([code], name)
    assert float_code(name)(float_text(again, name)) == code


def test_printing_holds_one_row_of_texts_at_a_time() -> None:
    """Constants have many million elements; their texts would need as much again."""
    rows, columns = 1000, 1000
    row = f"{{{', '.join(['0'] * columns)}}}"
    text = f"{{ {', '.join([row] * rows)} }}"
    shape = parse_shape(f"f32[{rows},{columns}]")
    tracemalloc.start()
    try:
        canonical_literal(text, shape)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 14 * rows * columns
