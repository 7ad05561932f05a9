"""Shapes: one object per value, as XLA writes them."""

from __future__ import annotations

import pickle
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.shapes.layout import Layout
from hloopt.ir.shapes.shape import (
    Shape,
    array_shape,
    compatible,
    fold,
    format_shape,
    tuple_shape,
    without_layout,
)
from hloopt.ir.shapes.shape_parser import parse_shape, scan_shape

LEAVES = st.sampled_from(
    [
        "f32[]",
        "f32[2,3]{1,0}",
        "f32[2,3]{0,1}",
        "pred[<=4]{0}",
        "bf16[?]{0}",
        "token[]",
        "s4[8]{0:E(4)}",
    ]
)
SHAPES = st.recursive(
    LEAVES.map(parse_shape),
    lambda inner: st.lists(inner, max_size=7).map(tuple_shape),
    max_leaves=12,
)


@given(SHAPES)
def test_text_and_back_is_the_same_object(shape: Shape) -> None:
    assert parse_shape(shape.text) is shape
    assert pickle.loads(pickle.dumps(shape)) is shape


@pytest.mark.parametrize(
    "text",
    [
        "f32[2,3]{1,0:T(8,128)(2,1)L(4)#(u32)*(u8)E(4)S(5)SC(0:3,7)M(64)}",
        "(f32[], (s32[2]{0}), ())",
        "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[])",
        "b(f32[4]{0})",
        "f32[<=3,?]{1,0}",
        "f32[]{:S(1)}",
        "token[]",
        "f32[0]{0}",
    ],
)
def test_the_forms_of_xla_are_kept(text: str) -> None:
    assert parse_shape(text).text == text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("f32[2,3]", "f32[2,3]{1,0}"),
        (" ( f32[ 2 , 3 ] {0, 1} , /* x */ s32[] ) ", "(f32[2,3]{0,1}, s32[])"),
        ("f32 [2]", "f32[2]{0}"),
        ("(f32[],s32[])", "(f32[], s32[])"),
    ],
)
def test_other_forms_mean_the_same(written: str, meant: str) -> None:
    assert parse_shape(written) is parse_shape(meant)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f33[]", "unknown element type 'f33'"),
        ("f32", "expected a shape"),
        ("f32[2]{1,0}", "has 2 dimensions"),
        ("f32[-2]", "out of range"),
        ("f32[9223372036854775808]", "out of range"),
        ("f32[a]", "expected a dimension size"),
        ("(f32[]", "expected ',' or ')'"),
        ("f32[] x", "unexpected text after the shape"),
        ("b(token[])", "holds one array shape"),
        ("f32[2]{0:S(1)T(8)}", "out of order"),
        ("f32[2]{0:X(1)}", "expected the layout to end"),
    ],
)
def test_malformed_shapes_are_explained(text: str, message: str) -> None:
    with pytest.raises(HloSyntaxError) as caught:
        parse_shape(text)
    assert message in caught.value.message


def test_a_shape_is_read_out_of_a_longer_text() -> None:
    shape, end = scan_shape("x = f32[2]{0} add(", 3)
    assert shape is parse_shape("f32[2]{0}")
    assert end == 13


def test_compatible_shapes_differ_in_layouts_only() -> None:
    a, b = parse_shape("(f32[2,3]{1,0}, s32[])"), parse_shape("(f32[2,3]{0,1}, s32[])")
    assert a is not b
    assert compatible(a, b)
    assert not compatible(a, parse_shape("(f32[3,2], s32[])"))
    assert not compatible(parse_shape("f32[4]"), parse_shape("f32[<=4]"))
    assert not compatible(parse_shape("f32[4]"), parse_shape("b(f32[4])"))
    assert compatible(parse_shape("b(f32[4,5]{0,1})"), parse_shape("b(f32[4,5])"))
    assert without_layout(b) is a
    assert format_shape(b, layout=False) == "(f32[2,3], s32[])"


def test_facts() -> None:
    shape = parse_shape("(f32[2,<=3]{0,1}, (token[], pred[]))")
    assert shape.is_tuple
    assert [index for index, _ in shape.subshapes()] == [(), (0,), (1,), (1, 0), (1, 1)]
    array, token, pred = shape.leaves()
    assert (array.rank, array.element_count(), array.is_dynamic) == (2, 6, True)
    assert array.type_name == "f32"
    assert token.is_token
    assert not token.is_array
    assert pred.is_scalar
    assert parse_shape("f32[?]").element_count() == 0


def test_shapes_are_made_from_others() -> None:
    shape = array_shape("f32", (2, 3))
    assert shape is parse_shape("f32[2,3]{1,0}")
    assert shape.with_layout(Layout((0, 1))) is parse_shape("f32[2,3]{0,1}")
    assert shape.with_element_type("bf16") is parse_shape("bf16[2,3]")
    assert tuple_shape([shape]).with_element_type("s8") is parse_shape("(s8[2,3])")


def test_deeply_nested_tuples_need_no_recursion() -> None:
    text = "(" * 5000 + "f32[2]{0}" + ")" * 5000
    shape = parse_shape(text)
    assert shape.text == text
    assert len(without_layout(shape).subshapes()) == 5001


def test_a_fold_takes_each_distinct_shape_once_and_what_is_known_from_there() -> None:
    """Every level holds the one below it and the leaf ten times: 10**9 leaves."""
    leaf = array_shape("f32", (8,))
    nested = leaf
    for _ in range(8):
        nested = tuple_shape([leaf, *[nested] * 10])
    measured: list[Shape] = []

    def count(shape: Shape) -> int:
        measured.append(shape)
        return 1

    known = {array_shape("s32"): 1000}
    assert fold(nested, count, sum, known) == 10**8 + (10**8 - 1) // 9
    assert (
        fold(tuple_shape([nested, array_shape("s32")]), count, sum, known) == known[nested] + 1000
    )
    assert measured == [leaf]


def test_the_leaves_of_a_deep_tuple_take_its_depth_once() -> None:
    """With the index of each, as long as it is deep, 20,000 levels would take a gigabyte."""
    shape = array_shape("f32", (8,))
    deep = shape
    for _ in range(20_000):
        deep = tuple_shape([deep])
    tracemalloc.start()
    try:
        leaves = tuple_shape([shape, deep, shape]).leaves()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert leaves == [shape] * 3
    assert peak < 1 << 20
