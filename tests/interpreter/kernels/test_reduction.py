"""Reductions and scans."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.interpreter.running import run

from hloopt.interpreter.plan import Plans
from hloopt.interpreter.reducers import is_associative_selection
from hloopt.text import parse_module


def _reducer(opcode: str, type: str = "f32") -> str:
    return (
        f"r {{ x = {type}[] parameter(0)\n y = {type}[] parameter(1)\n"
        f" ROOT s = {type}[] {opcode}(x, y) }}\n"
    )


def _reduce(opcode: str, type: str, sizes: str, result: str, dimensions: str) -> str:
    return (
        f"HloModule m\n{_reducer(opcode, type)}ENTRY e {{ p = {type}[{sizes}] parameter(0)\n"
        f" z = {type}[] parameter(1)\n"
        f" ROOT c = {type}[{result}] reduce(p, z), dimensions={{{dimensions}}}, to_apply=r }}"
    )


_X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


@pytest.mark.parametrize(
    ("opcode", "initial", "expected"),
    [
        ("add", 10, [15, 13, 7]),
        ("multiply", 2, [8, -20, -36]),
        ("maximum", 4.5, [4.5, 5, 4.5]),
        ("minimum", -1, [-1, -2, -6]),
        ("subtract", 10, [5, 7, 13]),
    ],
)
def test_reduces_from_the_initial_value(opcode: str, initial: float, expected: list[float]) -> None:
    text = _reduce(opcode, "f32", "2,3", "3", "0")
    result = run(text, _X, np.array(initial, np.float32))
    assert result.dtype == np.float32
    assert result.tolist() == expected


def test_reduces_several_dimensions_to_a_scalar_array() -> None:
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    some = run(_reduce("add", "s32", "2,3,4", "3", "2,0"), x, np.array(1, np.int32))
    assert some.tolist() == (x.sum((0, 2)) + 1).tolist()
    everything = run(_reduce("add", "s32", "2,3,4", "", "0,1,2"), x, np.array(0, np.int32))
    assert isinstance(everything, np.ndarray)
    assert everything.shape == ()
    assert everything == 276


def test_nothing_to_reduce_gives_the_initial_value() -> None:
    empty = np.zeros((0, 3), np.float32)
    for opcode in ("maximum", "subtract"):
        text = _reduce(opcode, "f32", "0,3", "3", "0")
        assert run(text, empty, np.array(7, np.float32)).tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("type", "dtype", "values", "opcode", "expected"),
    [
        ("s8", np.int8, [100, 100, 1], "add", -55),
        ("u8", np.uint8, [200, 100, 1], "add", 45),
        ("s4", ml_dtypes.int4, [7, 7, 7], "add", 5),
        ("pred", np.bool_, [True, True, False], "add", True),
        ("pred", np.bool_, [True, True, True], "xor", True),
        ("u32", np.uint32, [0b110, 0b011, 0b111], "and", 0),
        ("s32", np.int32, [5, -3, 4], "minimum", -3),
    ],
)
def test_integers_wrap_around(
    type: str, dtype: type, values: list[int], opcode: str, expected: int
) -> None:
    text = _reduce(opcode, type, "3", "", "0")
    result = run(text, np.array(values, dtype), np.array(0, dtype))
    assert result.dtype == np.dtype(dtype)
    assert int(result) == int(expected)


def test_sums_of_small_floats_are_rounded_once() -> None:
    x = np.full(4096, 1, ml_dtypes.bfloat16)  # in steps of bf16 this stops at 256
    result = run(_reduce("add", "bf16", "4096", "", "0"), x, np.array(0, ml_dtypes.bfloat16))
    assert result.dtype == ml_dtypes.bfloat16
    assert float(result) == 4096


def test_nan_wins() -> None:
    x = np.array([1, np.nan, 3], np.float32)
    result = run(_reduce("maximum", "f32", "3", "", "0"), x, np.array(-np.inf, np.float32))
    assert np.isnan(result)


_ARGMAX = """
arg { a = f32[] parameter(0)
 i = s32[] parameter(1)
 b = f32[] parameter(2)
 j = s32[] parameter(3)
 gt = pred[] compare(a, b), direction=GT
 odd = pred[] compare(a, a), direction=NE
 first = pred[] or(gt, odd)
 eq = pred[] compare(a, b), direction=EQ
 lt = pred[] compare(i, j), direction=LT
 tie = pred[] and(eq, lt)
 either = pred[] or(first, tie)
 value = f32[] select(first, a, b)
 index = s32[] select(either, i, j)
 ROOT t = (f32[], s32[]) tuple(value, index) }
"""


def test_argmax_takes_few_steps() -> None:
    text = f"""HloModule m
{_ARGMAX}
ENTRY e {{ p = f32[2,1001] parameter(0)
 n = s32[2,1001] parameter(1)
 low = f32[] constant(-inf)
 zero = s32[] constant(0)
 ROOT r = (f32[2], s32[2]) reduce(p, n, low, zero), dimensions={{1}}, to_apply=arg }}"""
    computation = parse_module(text).computations["arg"]
    assert is_associative_selection(Plans(), computation)
    x = np.random.default_rng(0).integers(-50, 50, (2, 1001)).astype(np.float32)
    values, places = run(text, x, np.tile(np.arange(1001, dtype=np.int32), (2, 1)))
    assert values.tolist() == x.max(1).tolist()
    assert places.tolist() == x.argmax(1).tolist()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("ROOT r = f32[] maximum(x, y)", True),
        ("c = pred[] compare(x, y), direction=LT\n ROOT r = f32[] select(c, y, x)", False),  # NaN
        ("c = pred[] compare(x, y), direction=EQ\n ROOT r = f32[] select(c, y, x)", False),  # -0
        ("c = pred[] compare(x, x), direction=EQ\n ROOT r = f32[] select(c, x, y)", True),
        ("ROOT r = f32[] add(x, y)", False),
    ],
)
def test_only_what_is_associative_is_regrouped(body: str, expected: bool) -> None:
    text = f"HloModule m\nENTRY r {{ x = f32[] parameter(0)\n y = f32[] parameter(1)\n {body} }}"
    assert is_associative_selection(Plans(), parse_module(text).entry) is expected


def test_accumulators_are_reduced_side_by_side() -> None:
    text = """HloModule m
both { a = f32[] parameter(0)
 b = s32[] parameter(1)
 x = f32[] parameter(2)
 y = s32[] parameter(3)
 s = f32[] add(a, x)
 m = s32[] maximum(y, b)
 ROOT t = (f32[], s32[]) tuple(s, m) }
ENTRY e { p = f32[3] parameter(0)
 q = s32[3] parameter(1)
 z = f32[] parameter(2)
 n = s32[] parameter(3)
 ROOT r = (f32[], s32[]) reduce(p, q, z, n), dimensions={0}, to_apply=both }"""
    arguments = (np.array([1, 2, 3], np.float32), np.array([4, 6, 5], np.int32))
    total, largest = run(text, *arguments, np.array(0.5, np.float32), np.array(0, np.int32))
    assert (float(total), int(largest)) == (6.5, 6)


def test_unknown_computations_fold_in_order() -> None:
    text = """HloModule m
r { x = f32[] parameter(0)
 y = f32[] parameter(1)
 two = f32[] constant(2)
 d = f32[] multiply(x, two)
 ROOT s = f32[] add(d, y) }
ENTRY e { p = f32[2,2] parameter(0)
 z = f32[] parameter(1)
 ROOT c = f32[] reduce(p, z), dimensions={1,0}, to_apply=r }"""
    x = np.array([[1, 2], [3, 4]], np.float32)
    assert float(run(text, x, np.array(1, np.float32))) == 16 + 8 + 8 + 6 + 4


_SCAN = """HloModule m
c { x = f32[2] parameter(0)
 y = f32[2] parameter(1)
 a = f32[2] add(x, y)
 d = f32[2] subtract(y, x)
 ROOT t = (f32[2], f32[2]) tuple(a, d) }
ENTRY e { p = f32[2,3] parameter(0)
 q = f32[2] parameter(1)
 ROOT s = (f32[2,3], f32[2]) scan(p, q), dimensions={1}, num_carries=1, REVERSE to_apply=c }"""


@pytest.mark.parametrize(
    ("reverse", "outputs"),
    [
        ("is_reverse=true,", [[6, 9, 13], [13, 19, 26]]),  # as XLA:CPU has it
        ("", [[11, 11, 10], [24, 21, 17]]),
    ],
)
def test_scan_hands_on_carries(reverse: str, outputs: list[list[float]]) -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    carry = np.array([10, 20], np.float32)
    stacked, last = run(_SCAN.replace("REVERSE", reverse), x, carry)
    assert stacked.tolist() == outputs
    assert last.tolist() == [4, 5]
