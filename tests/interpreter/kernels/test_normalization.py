"""Batch normalization."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.interpreter.running import run

from hloopt.interpreter.values import Array

_PARAMETERS = """ s = f64[3] parameter(1)
 o = f64[3] parameter(2)
"""


def _arrays() -> tuple[Array, Array, Array]:
    random = np.random.default_rng(4)
    return random.normal(size=(2, 3, 5)), random.normal(size=3), random.normal(size=3)


def _normalize(x: Array, mean: Array, variance: Array) -> Array:
    return np.asarray((x - mean[:, None]) / np.sqrt(variance[:, None] + 0.5))


def test_training_and_inference() -> None:
    x, scale, offset = _arrays()
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    expected = _normalize(x, mean, variance) * scale[:, None] + offset[:, None]
    training = f"""HloModule m
ENTRY e {{ x = f64[2,3,5] parameter(0)
{_PARAMETERS} ROOT b = (f64[2,3,5], f64[3], f64[3]) batch-norm-training(x, s, o), epsilon=0.5,
  feature_index=1 }}"""
    found = run(training, x, scale, offset)
    for part, value in zip(found, (expected, mean, variance), strict=True):
        np.testing.assert_allclose(part, value, atol=1e-12)
    inference = f"""HloModule m
ENTRY e {{ x = f64[2,3,5] parameter(0)
{_PARAMETERS} m = f64[3] parameter(3)
 v = f64[3] parameter(4)
 ROOT b = f64[2,3,5] batch-norm-inference(x, s, o, m, v), epsilon=0.5, feature_index=1 }}"""
    np.testing.assert_allclose(
        run(inference, x, scale, offset, mean, variance), expected, atol=1e-12
    )


def test_gradient_is_that_of_training() -> None:
    x, scale, offset = _arrays()
    upstream = np.random.default_rng(5).normal(size=x.shape)
    text = """HloModule m
ENTRY e { x = f64[2,3,5] parameter(0)
 s = f64[3] parameter(1)
 m = f64[3] parameter(2)
 v = f64[3] parameter(3)
 g = f64[2,3,5] parameter(4)
 ROOT b = (f64[2,3,5], f64[3], f64[3]) batch-norm-grad(x, s, m, v, g), epsilon=0.5,
  feature_index=1 }"""
    found = run(text, x, scale, x.mean((0, 2)), x.var((0, 2)), upstream)

    def loss(x: Array, scale: Array, offset: Array) -> float:
        normal = _normalize(x, x.mean((0, 2)), x.var((0, 2)))
        return float((upstream * (normal * scale[:, None] + offset[:, None])).sum())

    step = 1e-6
    arguments = (x, scale, offset)
    for number, argument in enumerate(arguments):
        for index in np.ndindex(argument.shape):
            losses = []
            for sign in (1, -1):
                moved = [a.copy() for a in arguments]
                moved[number][index] += sign * step
                losses.append(loss(*moved))
            slope = (losses[0] - losses[1]) / (2 * step)
            assert found[number][index] == pytest.approx(slope, abs=1e-7)


def test_small_floats_are_rounded_at_the_end() -> None:
    text = """HloModule m
ENTRY e { x = bf16[2,1] parameter(0)
 s = bf16[1] parameter(1)
 o = bf16[1] parameter(2)
 ROOT b = (bf16[2,1], bf16[1], bf16[1]) batch-norm-training(x, s, o), epsilon=0,
  feature_index=1 }"""
    x = np.array([[1], [3]], ml_dtypes.bfloat16)
    one, zero = np.ones(1, ml_dtypes.bfloat16), np.zeros(1, ml_dtypes.bfloat16)
    result, mean, variance = run(text, x, one, zero)
    assert result.dtype == mean.dtype == variance.dtype == ml_dtypes.bfloat16
    assert [float(v) for v in (*result.ravel(), mean[0], variance[0])] == [-1, 1, 2, 1]


def test_epsilon_has_single_precision() -> None:
    text = """HloModule m
ENTRY e { x = f64[1,1] parameter(0)
 s = f64[1] parameter(1)
 o = f64[1] parameter(2)
 m = f64[1] parameter(3)
 v = f64[1] parameter(4)
 ROOT b = f64[1,1] batch-norm-inference(x, s, o, m, v), epsilon=1e-05, feature_index=1 }"""
    one, zero = np.ones(1), np.zeros(1)
    (found,) = np.ravel(run(text, np.ones((1, 1)), one, zero, zero, zero))
    assert found == 1 / np.sqrt(np.float64(np.float32(1e-05)))
