from __future__ import annotations

import math

import numpy as np
import pytest
from tests.interpreter.running import run
from tests.interpreter.single import array_of, run_single

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.values import dtype_of
from hloopt.ir.shapes.element_type import ELEMENT_TYPES

INF, NAN = math.inf, math.nan
_TYPES = [name for name, element in ELEMENT_TYPES.items() if element.bits]


@pytest.mark.parametrize(
    ("old", "new", "values", "expected"),
    [
        ("f32", "s8", [2.7, -2.7, 127.6, 300, -300, INF, NAN], [2, -2, 127, 127, -128, 127, 0]),
        ("f32", "u8", [-0.5, -3, 255.9, 1e30], [0, 0, 255, 255]),
        ("f32", "s32", [2.0**31, -(2.0**31), 3e9], [2**31 - 1, -(2**31), 2**31 - 1]),
        ("f64", "s64", [2.0**63, -1e30], [2**63 - 1, -(2**63)]),
        ("f32", "s4", [8, -9, 7.9], [7, -8, 7]),
        ("bf16", "u4", [-1, 16], [0, 15]),
        ("s32", "s8", [300, -300, 128], [44, -44, -128]),
        ("s8", "u4", [-1, 17], [15, 1]),
        ("s4", "s2", [5, -8], [1, 0]),
        ("f32", "pred", [0, -0.0, 0.5, NAN], [0, 0, 1, 1]),
        ("pred", "bf16", [0, 1], [0, 1]),
        ("f32", "f8e4m3fn", [448, 464, 466, INF, 17], [448, 448, NAN, NAN, 16]),
        ("f32", "f8e5m2", [57344, 61439, 61440], [57344, 57344, INF]),
        ("f32", "f8e4m3b11fnuz", [30, 31, -0.0], [30, NAN, 0]),
        ("f32", "f4e2m1fn", [INF, -100, 5, 0.25], [6, -6, 4, 0]),
        ("f8e5m2", "f8e4m3fn", [0.1, 57344, INF], [0.09375, NAN, NAN]),
        ("f64", "f8e4m3fn", [1 + 2**-4, 1 + 2**-4 + 2**-40], [1, 1.125]),
        ("f64", "f16", [1 + 2**-11 + 2**-40], [1]),  # by way of f32, as XLA:CPU has it
        ("s32", "bf16", [2**24 + 2**16 + 1], [2**24]),  # likewise
        ("s64", "f32", [2**60 + 2**36 + 1], [2**60 + 2**37]),
        ("c64", "f32", [1 + 2j], [1]),
        ("f32", "c64", [3], [3]),
    ],
)
def test_convert(old: str, new: str, values: list[float], expected: list[float]) -> None:
    found = run_single("convert", old, values, result=new)
    assert found.dtype == dtype_of(ELEMENT_TYPES[new])
    np.testing.assert_equal(found.astype(np.complex128 if new == "c64" else np.float64), expected)


@pytest.mark.parametrize("old", _TYPES)
def test_every_type_converts_to_every_type(old: str) -> None:
    for new in _TYPES:
        one = -1 if "s1" in (old, new) and "u" not in old + new else 1
        found = run_single("convert", old, [one], result=new)
        assert found.dtype == dtype_of(ELEMENT_TYPES[new])
        if "s1" not in (old, new):
            assert found[0] == 1, new


@pytest.mark.parametrize(
    ("old", "new", "values", "expected"),
    [
        ("f32[1]", "s32[1]", [1.5], [0x3FC00000]),
        ("f32[1]", "u8[1,4]", [1.5], [[0, 0, 0xC0, 0x3F]]),
        ("u8[1,4]", "f32[1]", [[0, 0, 0xC0, 0x3F]], [1.5]),
        ("f64[]", "u32[2]", 1.5, [0, 0x3FF80000]),
        ("s8[2]", "s4[2,2]", [0x12, -0x33], [[2, 1], [-3, -4]]),
        ("s4[2,2]", "s8[2]", [[1, 2], [3, -4]], [33, -61]),
        ("s4[4]", "u16[]", [1, 2, 3, -1], 0xF321),
        ("s4[2]", "u4[2]", [-8, 7], [8, 7]),
        ("u4[2]", "s4[2]", [8, 7], [-8, 7]),
        ("u4[2]", "f4e2m1fn[2]", [9, 3], [-0.5, 1.5]),
        ("u8[3]", "pred[3]", [0, 1, 2], [False, True, True]),
        ("pred[2]", "u8[2]", [True, False], [1, 0]),
        ("s16[2]", "pred[2,2]", [1, 256], [[True, False], [False, True]]),
    ],
)
def test_bitcast_convert(old: str, new: str, values: object, expected: object) -> None:
    text = f"p = {old} parameter(0)\n  ROOT r = {new} bitcast-convert(p)"
    found = run(f"HloModule m\nENTRY e {{\n  {text}\n}}\n", array_of(old.partition("[")[0], values))
    assert found.dtype == dtype_of(ELEMENT_TYPES[new.partition("[")[0]])
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("element", "exponent", "mantissa", "values", "expected"),
    [
        ("f32", 5, 10, [1 + 2**-11, 1 + 3 * 2**-11, 65504, 65520, 5e-8],
         [1, 1 + 2**-9, 65504, INF, 0]),
        ("f32", 8, 0, [1.5, -1.5, 1.25, 3e38], [2, -2, 1, INF]),
        ("f32", 1, 3, [1, -1.5, 2, -3, NAN], [0, -0.0, INF, -INF, NAN]),
        ("f32", 8, 23, [1e-40, 1.1], [np.float32(1e-40), np.float32(1.1)]),
        ("bf16", 5, 10, [1e-6, 65504, 1.0078125], [0, INF, 1.0078125]),
        ("f16", 5, 7, [1 + 2**-8, 6.1e-5], [1, np.float16(6.1e-5)]),
        ("f64", 11, 1, [1.25, 1.75, 1e-310], [1, 2, 0]),
    ],
)  # fmt: skip
def test_reduce_precision(
    element: str, exponent: int, mantissa: int, values: list[float], expected: list[float]
) -> None:
    attributes = f"exponent_bits={exponent}, mantissa_bits={mantissa}"
    found = run_single(f"reduce-precision, {attributes}", element, values).astype(np.float64)
    if (element, mantissa) == ("f64", 1):  # no fewer exponents: subnormal numbers are rounded
        found, expected = found[:2], expected[:2]
    np.testing.assert_allclose(found, expected, rtol=1e-2 if element == "f16" else 0)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


def _stochastic(new: str, values: list[float], random: int) -> list[int]:
    size = len(values)
    text = f"""HloModule m
ENTRY e {{
  p = f32[{size}] parameter(0)
  q = u32[{size}] parameter(1)
  ROOT r = {new}[{size}] stochastic-convert(p, q)
}}
"""
    found = run(text, array_of("f32", values), np.full(size, random, np.uint32))
    return [int(value) for value in found]


def test_stochastic_convert_goes_away_from_zero_where_the_fraction_exceeds_the_bits() -> None:
    values = [1, 1.001, 1.9, -1.5, 300, NAN, INF]
    assert _stochastic("s8", values, 0) == [1, 2, 2, -2, 127, 0, 127]
    assert _stochastic("s8", values, 2**31) == [1, 1, 2, -1, 127, 0, 127]
    assert _stochastic("s32", values, 2**32 - 1) == [1, 1, 1, -1, 300, 0, 2**31 - 1]
    with pytest.raises(RunError, match="signed integer"):
        _stochastic("bf16", values, 0)
