"""Sorts, transforms and decompositions look at the clock within, and come out the same in parts."""

from __future__ import annotations

import numpy as np
import pytest
from tests.interpreter.several_devices import entry

from hloopt.interpreter.arithmetic.lanes import by_parts, stable_order
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.limits import Deadline, Limits
from hloopt.interpreter.machine import run_module
from hloopt.interpreter.values import Array, Value
from hloopt.text import parse_module

LESS = """HloModule m
less { a = f32[] parameter(0)  b = f32[] parameter(1)
  ROOT lt = pred[] compare(a, b), direction=LT }
"""
SORT = (
    LESS
    + entry(
        "p = f32[3,1000] parameter(0)",
        "ROOT r = f32[3,1000] sort(p), dimensions={1}, to_apply=less",
    ).partition("\n")[2]
)
TRANSFORM = entry(
    "p = c64[12,90,8] parameter(0)",
    "ROOT r = c64[12,90,8] fft(p), fft_type=FFT, fft_length={90,8}",
)
TO_REALS = entry(
    "p = c64[12,30,8] parameter(0)",
    "ROOT r = f32[12,30,14] fft(p), fft_type=IRFFT, fft_length={30,14}",
)
CHOLESKY = entry("p = f32[64,64] parameter(0)", "ROOT r = f32[64,64] cholesky(p), lower=true")
SOLVE = entry(
    "p = f32[300,300] parameter(0)",
    "ROOT r = f32[300,300] triangular-solve(p, p), left_side=true, lower=true",
)
TOPK = entry(
    "p = f32[3,1000] parameter(0)",
    'ROOT r = (f32[3,4], s32[3,4]) custom-call(p), custom_call_target="TopK"',
)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hloopt.interpreter.arithmetic.lanes._PART", 64)


def _operand(text: str) -> Array:
    (parameter,) = parse_module(text).entry.parameters
    sizes = parameter.shape.dimensions
    values = np.random.default_rng(0).standard_normal((2, *sizes)).astype(np.float32)
    if "cholesky" in text:
        return np.asarray(values[0] @ values[0].T + 64 * np.eye(64), np.float32)
    if parameter.shape.type_name == "c64":
        return np.asarray(values[0] + 1j * values[1], np.complex64)
    return np.asarray(values[0])


def _run(text: str, limits: Limits) -> Value:
    (found,) = run_module(parse_module(text), [[_operand(text)]], limits=limits)
    return found


class _OverAfter(Deadline):
    """A deadline that is over when it was looked at a number of times."""

    def __init__(self, looks: float) -> None:
        super().__init__(100.0)
        self.looks = looks

    def is_over(self, needed: float = 0.0) -> bool:
        self.looks -= 1
        return self.looks < 0


@pytest.mark.parametrize("text", [SORT, TRANSFORM, TO_REALS, CHOLESKY, SOLVE, TOPK])
def test_the_clock_is_looked_at_within(text: str) -> None:
    with pytest.raises(RunError, match=r"%r: stopped here: the time limit is 100 s"):
        _run(text, Limits(deadline=_OverAfter(2)))


@pytest.mark.parametrize("text", [SORT, TRANSFORM, TO_REALS, TOPK])
def test_results_in_parts_are_the_same(text: str) -> None:
    whole, in_parts = _run(text, Limits()), _run(text, Limits(deadline=Deadline(100.0)))
    np.testing.assert_equal(in_parts, whole)


def test_an_order_in_parts_is_stable() -> None:
    values = np.random.default_rng(1).integers(0, 9, (2, 777)).astype(np.float32)
    values[:, ::50] = np.nan
    found = stable_order(values, lambda: None)
    np.testing.assert_array_equal(found, np.argsort(values, -1, kind="stable"))
    none = np.zeros((5, 0), np.float32)
    assert stable_order(none, lambda: None).shape == (5, 0)


def test_parts_may_change_the_length_of_lanes() -> None:
    values = np.arange(600).reshape(2, 30, 10)
    found = by_parts(lambda lanes: lanes[:, :3], values, lambda: None)
    np.testing.assert_array_equal(found, values[..., :3])
