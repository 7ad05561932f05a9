"""How far noise moves sums of terms of one sign."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloopt.interpreter.rounding_noise import MovableRoundings, RoundingNoise
from hloopt.interpreter.values import Array, float_info
from hloopt.text import parse_module

DOT = """HloModule m
ENTRY e {
  a = TYPE[32,65536] parameter(0)
  b = TYPE[65536] parameter(1)
  ROOT d = TYPE[32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
NORM = """HloModule m
ENTRY e {
  x = f32[4,65536] parameter(0)
  v = f32[65536] parameter(1)
  ROOT n = f32[4,65536] batch-norm-inference(x, v, v, v, v), epsilon=0.001, feature_index=1
}"""
CONVOLUTION = """HloModule m
ENTRY e {
  a = bf16[1,9,2] parameter(0)
  b = bf16[3,2,4] parameter(1)
  ROOT c = s32[1,7,4] convolution(a, b), window={size=3}, dim_labels=b0f_0io->b0f
}"""
SCALED = """HloModule m
ENTRY e {
  l = f8e4m3fn[4,64] parameter(0)
  r = f8e4m3fn[4,64] parameter(1)
  a = bf16[4,2] parameter(2)
  ROOT d = s32[4,4] scaled-dot(l, r, a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}"""
BF16 = np.dtype(ml_dtypes.bfloat16)


def moved(text: str, dtype: np.dtype[Any], result: tuple[int, ...]) -> float:
    """The largest move of a result, of its size."""
    root = parse_module(text).entry.root
    dice = np.random.default_rng(0)
    operands = [dice.uniform(1, 2, o.shape.dimensions).astype(dtype) for o in root.operands]
    value = dice.uniform(1e5, 2e5, result).astype(dtype)
    found = RoundingNoise(1).around(root, lambda *_: value)(root, *operands)
    exact = value.astype(np.float64)
    return float(np.max(np.abs(found.astype(np.float64) - exact) / exact))


@pytest.mark.parametrize(("dtype", "name"), [(BF16, "bf16"), (np.dtype(np.float32), "f32")])
def test_sums_grow_in_the_type_that_they_are_made_in(dtype: np.dtype[Any], name: str) -> None:
    found = moved(DOT.replace("TYPE", name), dtype, (32,))
    if dtype == BF16:
        assert found <= 2 * float(float_info(BF16).eps)
    else:
        assert 40 < found / float(np.finfo(np.float32).eps) < 80


def test_what_reads_many_elements_but_sums_few_does_not_grow() -> None:
    eps = float(np.finfo(np.float32).eps)
    small = moved(NORM.replace("65536", "16"), np.dtype(np.float32), (4, 16))
    assert moved(NORM, np.dtype(np.float32), (4, 65536)) < small + 8 * eps


def moves(
    operand: float, value: Array, *, dtype: np.dtype[Any] = BF16, operation: str = DOT
) -> list[int]:
    """How far integers move that are products of equal numbers, rounded to a type before."""
    root = parse_module(operation.replace("TYPE", "bf16")).entry.root
    operands = [np.full(o.shape.dimensions, operand, np.float32) for o in root.operands]
    noise = RoundingNoise(1, lambda _: False, MovableRoundings({root: dtype}))
    found = noise.around(root, lambda *_: value)(root, *operands)
    assert found.dtype == value.dtype
    return [int(move) for move in np.abs(found.astype(np.int64) - value)]


def test_integers_move_by_what_was_rounded_before_them() -> None:
    top = np.iinfo(np.int32).max
    found = moves(0.5, np.array([0, 7, 1000, -1000, top], np.int32))
    assert found[:4] == [1, 1, 4, 4]
    assert found[4] in (0, 1 << 23)
    unsigned = np.array([0, 7, 1000, 2**32 - 1], np.uint32)
    found = moves(0.5, unsigned)
    assert found[0] in (0, 1)
    assert found[1:3] == [1, 4]


@pytest.mark.parametrize("operation", [DOT, CONVOLUTION])
def test_integers_that_are_exact_sums_do_not_move(operation: str) -> None:
    """Up to the first that the type skips: 257 is 256 in it."""
    value = np.array([0, 7, -255, 255, 256, -256, 1000], np.int32)
    assert moves(1, value, operation=operation) == [0, 0, 0, 0, 1, 1, 4]


@pytest.mark.parametrize("operand", [0.5, 2.0**-30, 4097.0, np.inf, np.nan])
def test_integers_move_that_sums_are_not(operand: float) -> None:
    """Their terms have fractions, or are too large for exact sums."""
    assert moves(operand, np.array([7, 255], np.int32)) == [1, 1]


def test_integers_at_the_end_of_a_type_may_be_what_was_more() -> None:
    dtype = np.dtype(ml_dtypes.float6_e2m3fn)  # up to 7.5
    assert moves(1, np.array([6, 7], np.int32), dtype=dtype) == [0, 1]


def test_integers_move_that_are_products_of_scaled_values() -> None:
    assert moves(1, np.array([7], np.int32), operation=SCALED) == [1]
