"""reduce-window and select-and-scatter."""

from __future__ import annotations

import numpy as np
import pytest
from tests.interpreter.running import run
from tests.interpreter.single import array_of

from hloopt.ir.shapes.element_type import ELEMENT_TYPES


def _window(opcode: str, sizes: str, result: str, window: str) -> str:
    return f"""HloModule m
r {{ x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT s = f32[] {opcode}(x, y) }}
ENTRY e {{ p = f32[{sizes}] parameter(0)
 z = f32[] parameter(1)
 ROOT c = f32[{result}] reduce-window(p, z), window={{{window}}}, to_apply=r }}"""


@pytest.mark.parametrize(
    ("result", "window", "expected"),
    [
        # p = 0 1 2 3, starting from 100; as XLA:CPU has it
        (5, "size=3 pad=2_1", [100, 101, 103, 106, 105]),
        (8, "size=3 pad=2_1 lhs_dilate=2", [100, 100, 101, 101, 103, 102, 105, 103]),
        (2, "size=2 stride=2", [101, 105]),
        (2, "size=2 rhs_dilate=2", [102, 104]),
        (1, "size=2 pad=-1_-1", [103]),
        (2, "size=2 pad=-3_2", [103, 100]),
        (0, "size=5", []),
        (4, "size=4 pad=3_0", [100, 101, 103, 106]),
    ],
)
def test_windows_over_one_dimension(result: int, window: str, expected: list[float]) -> None:
    x, initial = np.arange(4, dtype=np.float32), np.array(100, np.float32)
    assert run(_window("add", "4", str(result), window), x, initial).tolist() == expected


def test_unknown_computations_fold_elements_inside() -> None:
    text = _window("subtract", "4", "5", "size=3 pad=2_1")
    x, initial = np.arange(4, dtype=np.float32), np.array(100, np.float32)
    assert run(text, x, initial).tolist() == [100, 99, 97, 94, 95]


@pytest.mark.parametrize("size", [7, 8, 100])
def test_long_windows(size: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, 100).astype(np.float32)
    text = _window("maximum", "100", "100", f"size={size} pad={size - 1}_0")
    result = run(text, x, np.array(-np.inf, np.float32))
    assert result.tolist() == [x[max(i - size + 1, 0) : i + 1].max() for i in range(100)]


def test_long_dilated_windows_with_strides() -> None:
    x = np.random.default_rng(0).integers(-9, 9, 200).astype(np.float32)
    text = _window("add", "200", "28", "size=30 stride=3 rhs_dilate=4")
    expected = [x[i : i + 117 : 4].sum() for i in range(0, 84, 3)]
    result = run(text, x, np.array(0, np.float32))
    assert result.tolist() == expected


def test_windows_over_two_dimensions() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    text = _window("add", "3,4", "2,2", "size=2x3")
    assert run(text, x, np.array(0, np.float32)).tolist() == [[18, 24], [42, 48]]


def test_windows_of_several_arrays() -> None:
    text = """HloModule m
arg { a = f32[] parameter(0)
 i = s32[] parameter(1)
 b = f32[] parameter(2)
 j = s32[] parameter(3)
 keep = pred[] compare(a, b), direction=GE
 value = f32[] select(keep, a, b)
 index = s32[] select(keep, i, j)
 ROOT t = (f32[], s32[]) tuple(value, index) }
ENTRY e { p = f32[4] parameter(0)
 n = s32[4] parameter(1)
 low = f32[] constant(-inf)
 none = s32[] constant(-1)
 ROOT r = (f32[3], s32[3]) reduce-window(p, n, low, none), window={size=2 pad=1_1 stride=2},
  to_apply=arg }"""
    arguments = (np.array([1, 3, 2, 5], np.float32), np.arange(4, dtype=np.int32))
    values, places = run(text, *arguments)
    assert values.tolist() == [1, 3, 5]
    assert places.tolist() == [0, 1, 3]


_SCATTER = """HloModule m
ge { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT c = pred[] compare(x, y), direction=GE }
s { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT a = f32[] add(x, y) }
ENTRY e { p = f32[SIZES] parameter(0)
 q = f32[PLACES] parameter(1)
 z = f32[] parameter(2)
 ROOT r = f32[SIZES] select-and-scatter(p, q, z), window={WINDOW}, select=ge, scatter=s }"""


@pytest.mark.parametrize(
    ("operand", "source", "initial", "window", "expected"),
    [
        # as XLA:CPU has it
        (
            [-5, -1, -1, -7, -2],
            [1, 2, 3],
            100,
            "size=3 stride=2 pad=1_1",
            [100, 103, 100, 100, 103],
        ),
        ([1, np.nan, np.nan, 3], [1, 2], 0, "size=2 stride=2", [0, 1, 0, 2]),
    ],
)
def test_select_and_scatter(
    operand: list[float], source: list[float], initial: float, window: str, expected: list[float]
) -> None:
    text = _SCATTER.replace("SIZES", str(len(operand))).replace("PLACES", str(len(source)))
    result = run(
        text.replace("WINDOW", window),
        np.array(operand, np.float32),
        np.array(source, np.float32),
        np.array(initial, np.float32),
    )
    assert result.tolist() == expected


@pytest.mark.parametrize(
    "element", [e.name for e in ELEMENT_TYPES.values() if e.is_floating and e.name != "f8e8m0fnu"]
)
def test_select_and_scatter_of_every_float_type(element: str) -> None:
    text = _SCATTER.replace("SIZES", "4").replace("PLACES", "2").replace("f32", element)
    operands = [array_of(element, values) for values in ([1, 2, 4, 3], [0.5, 1], 0)]
    result = run(text.replace("WINDOW", "size=2 stride=2"), *operands)
    assert result.astype(np.float32).tolist() == [0, 0.5, 1, 0]


def test_select_and_scatter_in_two_dimensions() -> None:
    x = np.array([[1, 2, 0], [4, 3, 9]], np.float32)
    text = _SCATTER.replace("SIZES", "2,3").replace("PLACES", "1,2")
    source, zero = np.array([[10, 20]], np.float32), np.array(0, np.float32)
    result = run(text.replace("WINDOW", "size=2x2"), x, source, zero)
    assert result.tolist() == [[0, 0, 0], [10, 0, 20]]
