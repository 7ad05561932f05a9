"""Values up to rounding: what tests take for the same, and what errors are told of outputs."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest
from tests.interpreter.single import array_of

from hloopt.equivalence.agreement import Disagreement, first_difference

Array = np.ndarray[Any, np.dtype[Any]]


def f32(values: list[float]) -> Array:
    return np.array(values, np.float32)


# -- values -------------------------------------------------------------------------------------

STEPS = {
    **{"f64": 1e-9, "f32": 2e-4, "f16": 1e-2, "bf16": 4e-2},
    **{"c64": 2e-4, "c128": 1e-9},
}
"""By type: how far from 1 a value may be, half of it from itself, half from the largest."""


@pytest.mark.parametrize(("name", "step"), STEPS.items())
def test_floats_are_compared_with_the_tolerance_of_their_type(name: str, step: float) -> None:
    one = array_of(name, [1.0])
    for factor, differs in ((1.0, False), (1.9, False), (4.5, True)):
        other = array_of(name, [1 + factor * step])
        assert (first_difference(one, other) is not None) == differs, factor
        assert (first_difference(other, one) is not None) == differs, factor


@pytest.mark.parametrize("name", ["f8e4m3fn", "f8e5m2", "f8e3m4", "f8e4m3b11fnuz", "f4e2m1fn"])
def test_small_floats_may_be_off_by_one_step(name: str) -> None:
    """What halves every value is found even there."""
    steps = {"f8e4m3fn": 1.125, "f8e5m2": 1.25, "f8e3m4": 1.0625, "f8e4m3b11fnuz": 1.125}
    one, next_one, far = (array_of(name, [n]) for n in (1, steps.get(name, 1.5), 3))
    assert first_difference(one, next_one) is None
    assert first_difference(next_one, one) is None
    assert first_difference(one, far) is not None
    assert first_difference(far, one) is not None
    if name != "f4e2m1fn":
        values = array_of(name, [2, 1.5, 1])
        assert first_difference(values, array_of(name, [1, 0.75, 0.5])) is not None


def test_small_values_are_measured_against_the_largest_of_their_array() -> None:
    """What cancels leaves an error of the size of what it is made of."""
    assert first_difference(f32([1000, 1e-3]), f32([1000, -1e-3])) is None
    assert first_difference(f32([0.01, 1e-3]), f32([0.01, -1e-3])) is not None


def test_infinities_do_not_hide_the_other_values() -> None:
    left, right = f32([inf, 1]), f32([inf, 2])
    difference = first_difference(left, right)
    assert difference == Disagreement((), (1,), "1.0", "2.0", 1, 2)


@pytest.mark.parametrize("name", ["f64", "f32", "bf16", "f16", "f8e5m2"])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        *((nan, nan, True), (nan, 1, False), (1, nan, False), (inf, inf, True), (0.0, -0.0, True)),
        *(
            (inf, -inf, False),
            (inf, nan, False),
            (inf, 1, False),
            (1, inf, False),
            (-inf, 1, False),
        ),
    ],
)
def test_special_values(name: str, exact: bool, left: float, right: float, same: bool) -> None:
    arrays = array_of(name, [left, 0]), array_of(name, [right, 0])
    assert (first_difference(*arrays, exact=exact) is None) == same


def test_parts_of_complex_numbers_that_are_nan_make_the_number_nan() -> None:
    left = np.array([complex(nan, 1)], np.complex64)
    assert first_difference(left, np.array([complex(2, nan)], np.complex64)) is None
    assert first_difference(left, np.array([complex(2, 1)], np.complex64)) is not None


@pytest.mark.parametrize("name", ["s4", "u4", "s8", "u8", "s32", "u64", "s64", "pred"])
def test_integers_have_to_be_equal(name: str) -> None:
    assert first_difference(array_of(name, [0, 1]), array_of(name, [0, 1])) is None
    assert first_difference(array_of(name, [0, 1]), array_of(name, [0, 0])) is not None


def test_large_integers_are_not_compared_as_floats() -> None:
    left = np.array([2**62], np.int64)
    assert first_difference(left, left + 1) is not None


def test_exact_comparisons_see_the_last_bit() -> None:
    left = f32([1])
    right = np.nextafter(left, np.float32(2))
    assert first_difference(left, right) is None
    assert first_difference(left, right, exact=True) is not None


def test_the_first_of_several_differences_is_told() -> None:
    left = (np.zeros(2), None, (np.zeros((2, 2)), np.zeros(3)))
    right = (np.zeros(2), None, (np.array([[0, 0], [3, 4]]).astype(float), np.ones(3)))
    assert first_difference(left, right) == Disagreement((2, 0), (1, 0), "0.0", "3.0", 2, 4)


@pytest.mark.parametrize(
    ("right", "text"),
    [(np.zeros(3, np.float32), "f32[3]"), (np.zeros(2), "f64[2]"), (np.zeros(()), "f64[]")],
)
def test_other_types_and_sizes_differ(right: Array, text: str) -> None:
    left = np.zeros(2, np.float32)
    assert first_difference(left, right) == Disagreement((), None, "f32[2]", text)


def test_what_has_no_elements_is_equal() -> None:
    assert first_difference(np.zeros((0, 3)), np.zeros((0, 3))) is None
    assert first_difference((), ()) is None
    assert first_difference(None, None) is None
