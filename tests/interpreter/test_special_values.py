"""Inputs with special values: which arrays can hold them, and which values they are."""

from __future__ import annotations

import numpy as np
import pytest

from hloopt.interpreter.roles import NO_ROLE, Role
from hloopt.interpreter.special_values import SPECIALS, Special, takes, with_special
from hloopt.interpreter.values import Array, dtype_of_shape
from hloopt.ir.shapes.shape import Shape, array_shape

INDEX = Role(bound=10, steers=True)


def shape_of(text: str) -> Shape:
    name, _, size = text.rstrip("]").partition("[")
    return array_shape(name, tuple(map(int, size.split(","))) if size else ())


def made(text: str, special: Special, role: Role = NO_ROLE, number: int = 0) -> Array:
    shape = shape_of(text)
    ordinary = np.full(shape.dimensions, 3).astype(dtype_of_shape(shape))
    return with_special(ordinary, shape, special, [0, number], role)


@pytest.mark.parametrize(
    ("text", "role", "kinds"),
    [
        ("f32[8]", NO_ROLE, ["NaN", "infinities", "zeros"]),
        ("f32[0]", NO_ROLE, []),
        ("c64[8]", NO_ROLE, ["NaN", "infinities", "zeros"]),
        ("f8e8m0fnu[8]", NO_ROLE, []),
        ("pred[8]", NO_ROLE, []),
        ("s32[8]", NO_ROLE, ["zeros", "integer extremes"]),
        ("s32[8]", Role(steers=True), []),
        ("s32[8]", INDEX, ["negative indices", "indices too large"]),
        ("u32[]", INDEX, ["indices too large"]),
        ("s32[]", Role(branches=3, steers=True), ["negative indices", "indices too large"]),
        ("s32[]", Role(branches=2, steers=True), []),
    ],
)
def test_which_arrays_hold_which_values(text: str, role: Role, kinds: list[Special]) -> None:
    assert [s for s in SPECIALS if takes(s, shape_of(text), role)] == kinds


def test_few_are_nan_so_that_not_all_results_are() -> None:
    array = made("f32[64,64]", "NaN")
    assert 0 < np.isnan(array).sum() < 64
    assert (np.isnan(array) | (array == 3)).all()


@pytest.mark.parametrize("text", ["f32[64]", "bf16[64]", "f64[64]", "f8e5m2[64]"])
def test_infinities_have_both_signs(text: str) -> None:
    array = made(text, "infinities").astype(np.float64)
    assert {np.inf, -np.inf} <= set(array.tolist())


def test_a_type_without_infinities_has_its_largest_number() -> None:
    array = made("f8e4m3fn[64]", "infinities").astype(np.float64)
    assert {448.0, -448.0} <= set(array.tolist())


def test_zeros_have_both_signs_and_subnormal_neighbours() -> None:
    array = made("f32[64]", "zeros")
    zeros = array[array == 0]
    assert set(np.signbit(zeros).tolist()) == {True, False}
    assert ((array != 0) & (np.abs(array) < np.finfo(np.float32).tiny)).any()


@pytest.mark.parametrize("text", ["s32[64]", "u8[64]", "s4[64]", "u64[64]", "s64[64]"])
def test_extremes_are_those_of_the_type(text: str) -> None:
    array = made(text, "integer extremes")
    bits = int(text[1 : text.index("[")])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if text[0] == "s" else (0, 2**bits - 1)
    values = {int(value) for value in array}
    assert {low, high} <= values


def test_indices_leave_their_range_at_either_end() -> None:
    assert made("s32[64]", "negative indices", INDEX).min() == -(2**31)
    assert made("s32[64]", "indices too large", INDEX).max() == 2**31 - 1
    assert -12 < made("s32[]", "negative indices", INDEX) < 0
    assert 10 <= made("s32[]", "indices too large", INDEX) <= 20


def test_every_other_scalar_stays_as_it_is() -> None:
    assert np.isnan(made("f32[]", "NaN", number=0))
    assert made("f32[]", "NaN", number=1) == 3


def test_complex_numbers_have_special_parts() -> None:
    array = made("c64[64]", "infinities")
    assert np.isinf(array.real).any()
    assert np.isinf(array.imag).any()
