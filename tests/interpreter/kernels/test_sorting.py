from __future__ import annotations

import math

import numpy as np
import pytest
from tests.interpreter.running import run
from tests.interpreter.single import run_single

from hloopt.interpreter.values import Array

INF, NAN = math.inf, math.nan
_KEYS_AND_VALUES = """HloModule m
less {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  x = s32[] parameter(2)
  y = s32[] parameter(3)
{comparator}
}}
ENTRY e {{
  k = f32[{sizes}] parameter(0)
  v = s32[{sizes}] parameter(1)
  ROOT r = (f32[{sizes}], s32[{sizes}]) sort(k, v), dimensions={{{dimension}}}, to_apply=less
}}
"""


def _sort(keys: Array, values: Array, comparator: str, dimension: int = 0) -> tuple[Array, Array]:
    sizes = ",".join(map(str, keys.shape))
    text = _KEYS_AND_VALUES.format(comparator=comparator, sizes=sizes, dimension=dimension)
    found: tuple[Array, Array] = run(text, keys, values)
    return found


_LESS = "  ROOT r = pred[] compare(a, b), direction=LT"
_GREATER = "  ROOT r = pred[] compare(a, b), direction=GT"
_GREATER_EXCHANGED = "  ROOT r = pred[] compare(b, a), direction=LT"
_LESS_IN_TOTAL_ORDER = "  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER"
_LESS_BY_SQUARE = """  aa = f32[] multiply(a, a)
  bb = f32[] multiply(b, b)
  ROOT r = pred[] compare(aa, bb), direction=LT"""
_LESS_BY_TWO = """  lt = pred[] compare(a, b), direction=LT
  eq = pred[] compare(a, b), direction=EQ
  gt = pred[] compare(x, y), direction=GT
  both = pred[] and(eq, gt)
  ROOT r = pred[] or(lt, both)"""
_LESS_BY_BITS = """  all = s32[] constant(2147483647)
  zero = s32[] constant(0)
  ab = s32[] bitcast(a)
  bb = s32[] bitcast(b)
  ax = s32[] xor(ab, all)
  bx = s32[] xor(bb, all)
  an = pred[] compare(ab, zero), direction=LT
  bn = pred[] compare(bb, zero), direction=LT
  as = s32[] select(an, ax, ab)
  bs = s32[] select(bn, bx, bb)
  ROOT r = pred[] compare(as, bs), direction=LT"""
_LESS_BY_A_TABLE = """  c = f32[] constant(0)
  cs = f32[3] broadcast(c), dimensions={}
  as = f32[3] broadcast(a), dimensions={}
  bs = f32[3] broadcast(b), dimensions={}
  lt = pred[3] compare(as, bs), direction=LT
  one = pred[1] slice(lt), slice={[1:2]}
  ROOT r = pred[] reshape(one)"""


@pytest.mark.parametrize(
    ("comparator", "order"),
    [
        (_LESS, [1, 3, 2, 5, 0, 4]),
        (_GREATER, [0, 4, 2, 5, 3, 1]),
        (_GREATER_EXCHANGED, [0, 4, 2, 5, 3, 1]),
        (_LESS_BY_SQUARE, [3, 2, 5, 1, 0, 4]),
        (_LESS_BY_TWO, [1, 3, 5, 2, 4, 0]),
        (_LESS_BY_BITS, [1, 3, 2, 5, 0, 4]),
        (_LESS_BY_A_TABLE, [1, 3, 2, 5, 0, 4]),
        (_LESS.replace("LT", "LE"), [1, 3, 5, 2, 4, 0]),  # XLA:CPU exchanges equal elements
    ],
)
def test_sort_by_any_comparator(comparator: str, order: list[int]) -> None:
    keys = np.array([3, -2, 1, 0, 3, 1], np.float32)
    values = np.arange(6, dtype=np.int32)
    sorted_keys, sorted_values = _sort(keys, values, comparator)
    assert sorted_values.tolist() == order
    assert sorted_keys.tolist() == keys[order].tolist()


def test_floats_in_total_order() -> None:
    keys = np.array([NAN, 0.0, INF, -0.0, -NAN, -INF, 1], np.float32)
    _, values = _sort(keys, np.arange(7, dtype=np.int32), _LESS_IN_TOTAL_ORDER)
    assert values.tolist() == [4, 5, 3, 1, 6, 2, 0]


@pytest.mark.parametrize("dimension", [0, 1, 2])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 64, 100])
def test_merge_sort_agrees_with_numpy_along_every_dimension(dimension: int, size: int) -> None:
    random = np.random.default_rng(size)
    sizes = [2, 3, 2]
    sizes[dimension] = size
    keys = random.integers(0, 5, sizes).astype(np.float32)
    values = random.integers(0, 50, sizes).astype(np.int32)
    found = _sort(keys, values, _LESS_BY_TWO, dimension)
    order = np.lexsort((-values, keys), axis=dimension)
    np.testing.assert_array_equal(found[0], np.take_along_axis(keys, order, dimension))
    np.testing.assert_array_equal(found[1], np.take_along_axis(values, order, dimension))


def test_a_comparator_that_is_no_order_still_permutes() -> None:
    keys = np.random.default_rng(0).integers(0, 9, 100).astype(np.float32)
    values = np.arange(100, dtype=np.int32)
    mixed = "  f = f32[] convert(y)\n  ROOT r = pred[] compare(a, f), direction=LT"
    found = _sort(keys, values, mixed)
    np.testing.assert_array_equal(np.sort(found[1]), values)
    np.testing.assert_array_equal(found[0], keys[found[1]])


def test_a_single_operand_is_no_tuple() -> None:
    text = """HloModule m
less {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY e {
  p = bf16[2,3] parameter(0)
  ROOT r = bf16[2,3] sort(p), dimensions={1}, to_apply=less
}
"""
    from ml_dtypes import bfloat16

    found = run(text, np.array([[3, 1, 2], [0, -1, 5]], bfloat16))
    assert found.dtype == bfloat16
    assert found.tolist() == [[1, 2, 3], [-1, 0, 5]]


@pytest.mark.parametrize(
    ("largest", "places"),
    [("true", [1, 4, 0, 7, 3, 6, 5, 8, 2]), ("false", [2, 8, 5, 6, 3, 0, 7, 4, 1])],
)  # both as XLA:CPU has them
def test_topk_is_in_total_order(largest: str, places: list[int]) -> None:
    values = [3, NAN, -NAN, 1, INF, -0.0, 0.0, 3, -INF]
    for count in (9, 2):
        instruction = f"topk, k={count}, largest={largest}"
        found = run_single(instruction, "f32", values, result=f"(f32[{count}], s32[{count}])")
        assert found[1].tolist() == places[:count]
        np.testing.assert_array_equal(found[0], np.array(values, np.float32)[places[:count]])
        assert found[1].dtype == np.int32
