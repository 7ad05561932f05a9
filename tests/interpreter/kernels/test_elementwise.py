from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.interpreter.running import run
from tests.interpreter.single import array_of, run_single

from hloopt.interpreter.errors import RunError

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("opcode", "element", "operands", "expected"),
    [
        ("divide", "s8", [[7, -7, 7, -7, -128, 5, 0], [2, 2, -2, -2, -1, 0, 0]],
         [3, -3, -3, 3, -128, -1, -1]),
        ("divide", "u8", [[7, 200, 5], [2, 3, 0]], [3, 66, 255]),
        ("divide", "s4", [[-8, 7, 3], [-1, -2, 0]], [-8, -3, -1]),
        ("remainder", "s8", [[7, -7, 7, -7, -128, 5], [2, 2, -2, -2, -1, 0]],
         [1, -1, 1, -1, 0, 5]),
        ("power", "s32", [[2, 3, -2, 3, -1, 0, 2], [-1, 40, 3, -1, -3, 0, 31]],
         [0, 689956897, -8, 0, -1, 1, -(2**31)]),
        ("multiply", "u4", [[9, 15], [9, 15]], [1, 1]),
        ("abs", "s8", [[-128, -5]], [-128, 5]),
        ("negate", "u8", [[1, 0]], [255, 0]),
        ("sign", "s32", [[-9, 0, 9]], [-1, 0, 1]),
        ("shift-left", "s8", [[1, 1, 1, -1], [6, 7, 8, -1]], [64, -128, 0, 0]),
        ("shift-right-arithmetic", "s8", [[-128, -128, 64, 64], [7, 8, -1, 3]], [-1, -1, 0, 8]),
        ("shift-right-arithmetic", "u8", [[254, 255], [1, 100]], [255, 255]),
        ("shift-right-logical", "s8", [[-1, -1, -1], [1, 8, 0]], [127, 0, -1]),
        ("shift-right-logical", "s4", [[-7, -7], [2, 4]], [2, 0]),
        ("mulhi", "s8", [[127, -128, -1], [127, -128, 1]], [63, 64, -1]),
        ("mulhi", "s64", [[2**62, -(2**63), -1], [8, 4, 3]], [2, -2, -1]),
        ("mulhi", "u64", [[2**64 - 1, 2**63 + 5], [2**64 - 1, 6]], [2**64 - 2, 3]),
        ("popcnt", "s8", [[-1, 0, 5]], [8, 0, 2]),
        ("popcnt", "u64", [[2**64 - 1, 2**40]], [64, 1]),
        ("popcnt", "s4", [[-7, 7]], [2, 3]),
        ("count-leading-zeros", "s8", [[-1, 0, 1]], [0, 8, 7]),
        ("count-leading-zeros", "u64", [[0, 1, 2**63]], [64, 63, 0]),
        ("count-leading-zeros", "u4", [[0, 1, 8]], [4, 3, 0]),
        ("not", "s4", [[7, 0]], [-8, -1]),
        ("add", "pred", [[0, 0, 1, 1], [0, 1, 0, 1]], [0, 1, 1, 1]),
        ("multiply", "pred", [[0, 0, 1, 1], [0, 1, 0, 1]], [0, 0, 0, 1]),
        ("xor", "pred", [[0, 0, 1, 1], [0, 1, 0, 1]], [0, 1, 1, 0]),
        ("not", "pred", [[0, 1]], [1, 0]),
    ],
)  # fmt: skip
def test_integers_follow_the_rules_of_xla(
    opcode: str, element: str, operands: list[list[int]], expected: list[int]
) -> None:
    typed = [np.array(operand, np.uint64 if element == "u64" else np.int64) for operand in operands]
    found = run_single(opcode, element, *typed)  # type: ignore[arg-type]  # arrays are sequences
    assert found.dtype == array_of(element, [0]).dtype
    assert [int(value) for value in found] == expected


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        ("maximum", [[NAN, 1, -INF], [1, NAN, 2]], [NAN, NAN, 2]),
        ("minimum", [[NAN, 1, INF], [1, NAN, 2]], [NAN, NAN, 2]),
        ("sign", [[-0.0, 0.0, NAN, -INF, 3]], [-0.0, 0.0, NAN, -1, 1]),
        ("round-nearest-even", [[0.5, 1.5, 2.5, -0.5, -2.5]], [0, 2, 2, -0.0, -2]),
        ("round-nearest-afz", [[0.5, 1.5, 2.5, -0.5, 0.49999997]], [1, 2, 3, -1, 0]),
        ("remainder", [[5.5, -5.5, 2, 1], [2, 2, INF, 0]], [1.5, -1.5, 2, NAN]),
        ("power", [[0, NAN, 1, -2, -2], [0, 0, NAN, 3, 0.5]], [1, 1, 1, -8, NAN]),
        ("rsqrt", [[4, 0, -0.0, -1, INF]], [0.5, INF, -INF, NAN, 0]),
        ("logistic", [[0, 1000, -1000, NAN]], [0.5, 1, 0, NAN]),
        ("cbrt", [[-8, 27]], [-2, 3]),
        ("atan2", [[0.0, -0.0, 1], [-1, -1, 0]], [math.pi, -math.pi, math.pi / 2]),
        ("log-plus-one", [[1e-8, -1, -2]], [math.log1p(1e-8), -INF, NAN]),
        ("exponential-minus-one", [[1e-8, -INF]], [math.expm1(1e-8), -1]),
        ("clamp", [[0, 0, 0], [NAN, 5, -5], [1, 1, 1]], [NAN, 1, 0]),
    ],
)
@pytest.mark.parametrize(("element", "accuracy"), [("f32", 1e-6), ("f64", 1e-14)])
def test_floats_follow_the_rules_of_xla(
    opcode: str, operands: list[list[float]], expected: list[float], element: str, accuracy: float
) -> None:
    found = run_single(opcode, element, *operands)
    np.testing.assert_allclose(found, expected, rtol=accuracy)
    numbers = ~np.isnan(expected)
    assert (np.signbit(found) == np.signbit(expected))[numbers].all()


@pytest.mark.parametrize(
    ("opcode", "function"),
    [
        *(("exponential", math.exp), ("log", math.log), ("sine", math.sin), ("tanh", math.tanh)),
        *(("cosine", math.cos), ("log-plus-one", math.log1p), ("cbrt", np.cbrt)),
    ],
)
def test_functions_of_f32_give_the_nearest_value(
    opcode: str, function: Callable[[float], float]
) -> None:
    points = np.linspace(0.01, 20, 999, dtype=np.float32)
    expected = np.array([function(float(point)) for point in points]).astype(np.float32)
    found = run_single(opcode, "f32", [points])
    assert (found == expected).all()


@pytest.mark.parametrize(("element", "accuracy"), [("f32", 2e-7), ("f64", 4e-15)])
def test_erf_is_accurate(element: str, accuracy: float) -> None:
    points = np.concatenate([np.linspace(-7, 7, 2001), [1e-30, -1e-9, 2, 6, INF, -INF]])
    points = array_of(element, points)
    found = run_single("erf", element, points)  # type: ignore[arg-type]  # arrays are sequences
    expected = [math.erf(float(point)) for point in points]
    np.testing.assert_allclose(found, expected, rtol=accuracy)
    assert np.isnan(run_single("erf", element, [NAN])).all()


@pytest.mark.parametrize(
    ("opcode", "element", "left", "right", "expected"),
    [
        ("add", "bf16", 256, 1, 256),  # ties to even
        ("add", "bf16", 258, 1, 260),
        ("add", "f16", 2048, 1, 2048),
        ("multiply", "f8e4m3fn", 448, 2, NAN),
        ("multiply", "f8e5m2", 57344, 2, INF),
        ("add", "f8e4m3fn", 16, 1, 16),
    ],
)
def test_small_floats_are_rounded_once(
    opcode: str, element: str, left: float, right: float, expected: float
) -> None:
    found = run_single(opcode, element, [left], [right])
    np.testing.assert_equal(found.astype(np.float64), [expected])


def test_comparisons_know_two_orders_of_floats() -> None:
    left, right = [-0.0, NAN, -NAN, 1, NAN], [0.0, INF, -INF, 2, NAN]
    expected = {
        "LT": [False, False, False, True, False],
        "EQ": [True, False, False, False, False],
        "NE": [False, True, True, True, True],
        "LT, type=TOTALORDER": [True, False, True, True, False],
        "EQ, type=TOTALORDER": [False, False, False, False, True],
        "LT, order=TOTAL": [True, False, True, True, False],
        "EQ, order=PARTIAL": [True, False, False, False, False],
    }
    for element in ("f32", "bf16", "f8e5m2"):
        for direction, values in expected.items():
            instruction = f"compare, direction={direction}"
            assert run_single(instruction, element, left, right, result="pred").tolist() == values


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        ("divide", [[1 + 1j, complex(INF, INF), 1], [0, -1j, complex(INF, 1)]],
         [complex(INF, INF), complex(-INF, INF), 0]),
        ("power", [[0, 0, 1j], [0, 2, 2]], [1, 0, -1]),
        ("exponential-minus-one", [[1e-9 + 1e-9j]], [1e-9 + 1e-9j]),
        ("log-plus-one", [[1e-9 + 1e-9j, 3j]], [1e-9 + 1e-9j, np.log(1 + 3j)]),
        ("sign", [[0, 3 + 4j]], [0, 0.6 + 0.8j]),
        ("logistic", [[0, complex(-INF, 1), -1000, 1000]], [0.5, 0, 0, 1]),
        ("rsqrt", [[-4]], [-0.5j]),
        ("tan", [[1 + 1j]], [np.tan(1 + 1j)]),
        ("maximum", [[1 + 2j, 1 + 2j], [1 + 3j, 2]], [1 + 2j, 2]),
    ],
)  # fmt: skip
def test_complex_numbers(
    opcode: str, operands: list[list[complex]], expected: list[complex]
) -> None:
    found = run_single(opcode, "c128", *operands)
    np.testing.assert_allclose(found.real, np.real(expected), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found.imag, np.imag(expected), rtol=1e-9, atol=1e-15)


def test_complex_numbers_of_parts_and_back() -> None:
    assert run_single("complex", "f32", [1, INF], [INF, 2], result="c64").tolist() == [
        complex(1, INF), complex(INF, 2)
    ]  # fmt: skip
    assert run_single("imag", "c64", [1 + 2j], result="f32").tolist() == [2]
    assert run_single("abs", "c64", [3 + 4j], result="f32").tolist() == [5]
    assert run_single("imag", "f32", [1]).tolist() == [0]


def test_scalars_next_to_arrays() -> None:
    text = """HloModule m
ENTRY e {
  c = pred[] parameter(0)
  x = s32[3] parameter(1)
  y = s32[3] parameter(2)
  low = s32[] constant(0)
  high = s32[] constant(4)
  s = s32[3] select(c, x, y)
  ROOT r = s32[3] clamp(low, s, high)
}
"""
    x, y = np.array([-1, 3, 9], np.int32), np.array([7, 2, -7], np.int32)
    assert run(text, np.array(True), x, y).tolist() == [0, 3, 4]
    assert run(text, np.array(False), x, y).tolist() == [4, 2, 0]


def test_scalars_stay_arrays() -> None:
    for opcode in ("negate", "erf", "logistic", "round-nearest-afz", "sign"):
        text = (
            f"HloModule m\nENTRY e {{\n  p = f32[] parameter(0)\n  ROOT r = f32[] {opcode}(p)\n}}"
        )
        assert isinstance(run(text, np.array(0.5, np.float32)), np.ndarray)


def test_what_a_type_does_not_have_is_an_error() -> None:
    with pytest.raises(RunError, match="sine does not take values of type s32"):
        run_single("sine", "s32", [1])
