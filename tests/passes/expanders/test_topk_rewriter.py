"""Sorts of which only the first elements are read."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, run_equal

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass

_PLAIN = "ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER"


def mapped(value: str, inverted: str) -> str:
    """A float as an integer in the same order."""
    return (
        f"s{value} = s32[] bitcast-convert({value}) "
        f"n{value} = pred[] compare(s{value}, zero), direction=LT {inverted} "
        f"m{value} = s32[] select(n{value}, v{value}, s{value}) "
    )


def by_xor(value: str) -> str:
    return mapped(value, f"v{value} = s32[] xor(most, s{value})")


def by_subtraction(value: str) -> str:
    return mapped(
        value,
        f"u{value} = u32[] bitcast-convert({value}) d{value} = u32[] subtract(limit, u{value}) "
        f"v{value} = s32[] bitcast-convert(d{value})",
    )


_NUMBERS = (
    "zero = s32[] constant(0) most = s32[] constant(2147483647) limit = u32[] constant(2147483647) "
)
_COMPARE = "ROOT r = pred[] compare(ma, mb), direction=GT"
_ORDERS = {
    "plain": _PLAIN,
    "xor": _NUMBERS + by_xor("a") + by_xor("b") + _COMPARE,
    "subtraction": _NUMBERS + by_subtraction("a") + by_subtraction("b") + _COMPARE,
    "select": (
        "c = pred[] compare(a, b), direction=GT, type=TOTALORDER t = pred[] constant(true) "
        "ROOT r = pred[] select(t, c, t)"
    ),
}


def program(shape: str, dimension: int, result: str, order: str = _PLAIN) -> str:
    kind, _, sizes = shape.partition("[")
    slices = ", ".join(f"[0:{size}]" for size in result[1:-1].split(","))
    return f"""HloModule m
f {{ a = {kind}[] parameter(0) b = {kind}[] parameter(1)
  i = s32[] parameter(2) j = s32[] parameter(3) {order} }}
ENTRY e {{
  x = {shape} parameter(0)
  p = s32[{sizes} iota(), iota_dimension={dimension}
  s = ({shape}, s32[{sizes}) sort(x, p), dimensions={{{dimension}}}, is_stable=true, to_apply=f
  v = {shape} get-tuple-element(s), index=0
  w = s32[{sizes} get-tuple-element(s), index=1
  a = {kind}{result} slice(v), slice={{{slices}}}
  b = s32{result} slice(w), slice={{{slices}}}
  ROOT t = ({kind}{result}, s32{result}) tuple(a, b)
}}"""


@pytest.mark.parametrize(
    ("shape", "dimension", "result"),
    [
        ("f32[9]", 0, "[4]"),
        ("f32[2,9]", 1, "[2,4]"),
        ("f32[9,2]", 0, "[4,2]"),
        ("f32[2,9,3]", 1, "[2,4,3]"),
        ("f32[2,3,9]", 2, "[2,3,9]"),
        ("s8[9]", 0, "[4]"),
    ],
)
def test_the_largest_of_each_row(shape: str, dimension: int, result: str) -> None:
    order = _PLAIN if shape[0] == "f" else _PLAIN.replace(", type=TOTALORDER", "")
    module = run_equal("topk-rewriter", program(shape, dimension, result, order))
    assert not [*module.instructions(Opcode.SORT)]
    assert create_pass("topk-decomposer").run(module, PassContext())


@pytest.mark.parametrize("order", _ORDERS)
def test_orders(order: str) -> None:
    run_checked("topk-rewriter", program("f32[9]", 0, "[4]", _ORDERS[order]))


@pytest.mark.parametrize(
    "order",
    [
        "ROOT r = pred[] compare(b, a), direction=GT, type=TOTALORDER",
        "ROOT r = pred[] compare(i, j), direction=GT",
        "ROOT r = pred[] compare(a, b), direction=GE, type=TOTALORDER",
        "ROOT r = pred[] compare(a, a), direction=GT, type=TOTALORDER",
        _NUMBERS + by_xor("a") + by_xor("b") + "ROOT r = pred[] compare(sa, sb), direction=GT",
        _NUMBERS.replace("2147483647", "7") + by_xor("a") + by_xor("b") + _COMPARE,
        "t = pred[] constant(false) c = pred[] compare(a, b), direction=GT, type=TOTALORDER "
        "ROOT r = pred[] select(t, c, t)",
    ],
)
def test_other_orders(order: str) -> None:
    assert reasons_to_stay("topk-rewriter", program("f32[9]", 0, "[4]", order)) == [
        "first-of-sorted: %f is not known to order by descending values"
    ]


def test_what_the_user_keeps() -> None:
    text = program("f32[9]", 0, "[4]")
    assert reasons_to_stay("topk-rewriter", text, is_profitable_to_convert=lambda _: False) == [
        "first-of-sorted: is_profitable_to_convert leaves it out"
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("slice(w), slice={[0:4]}", "slice(w), slice={[1:5]}"),
        ("slice(w), slice={[0:4]}", "slice(w), slice={[0:8:2]}"),
        ("slice(v), slice={[0:4]}", "slice(v), slice={[5:9]}"),
    ],
)
def test_other_parts(old: str, new: str) -> None:
    assert reasons_to_stay("topk-rewriter", program("f32[9]", 0, "[4]").replace(old, new)) == [
        "first-of-sorted: not just its first elements, and as many of them, are read"
    ]


def test_a_sort_that_is_read_whole() -> None:
    text = program("f32[9]", 0, "[4]").replace(
        "a = f32[4] slice(v), slice={[0:4]}", "a = f32[9] negate(v)"
    )
    assert (
        reasons_to_stay("topk-rewriter", text.replace("(f32[4], s32[4])", "(f32[9], s32[4])")) == []
    )
