"""How far noise moves sums of terms of one sign."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloopt.interpreter.rounding_noise import MovableRoundings, RoundingNoise
from hloopt.interpreter.values import float_info
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


def test_integers_move_by_what_was_rounded_before_them() -> None:
    root = parse_module(DOT.replace("TYPE", "bf16")).entry.root
    top = np.iinfo(np.int32).max
    value = np.array([0, 7, 1000, -1000, top], np.int32)
    noise = RoundingNoise(1, lambda _: False, MovableRoundings({root: BF16}))
    found = noise.around(root, lambda *_: value)(root)
    assert found.dtype == np.int32
    moves = np.abs(found.astype(np.int64) - value)
    assert moves[:4].tolist() == [1, 1, 4, 4]
    assert moves[4] in (0, 1 << 23)
