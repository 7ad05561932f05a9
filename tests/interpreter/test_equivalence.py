"""What counts as the same: values up to rounding, and modules by what they compute."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest
from tests.interpreter.single import array_of

from hloopt.interpreter.comparison import Difference, first_difference
from hloopt.interpreter.equivalence import Mismatch, Reference, RunSettings, only_moves_data
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.inputs import Inputs
from hloopt.ir.module import Module
from hloopt.text import parse_module

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
    assert difference == Difference((), (1,), "1.0", "2.0", 1, 2)


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
    assert first_difference(left, right) == Difference((2, 0), (1, 0), "0.0", "3.0", 2, 4)


@pytest.mark.parametrize(
    ("right", "text"),
    [(np.zeros(3, np.float32), "f32[3]"), (np.zeros(2), "f64[2]"), (np.zeros(()), "f64[]")],
)
def test_other_types_and_sizes_differ(right: Array, text: str) -> None:
    left = np.zeros(2, np.float32)
    assert first_difference(left, right) == Difference((), None, "f32[2]", text)


def test_what_has_no_elements_is_equal() -> None:
    assert first_difference(np.zeros((0, 3)), np.zeros((0, 3))) is None
    assert first_difference((), ()) is None
    assert first_difference(None, None) is None


# -- modules --------------------------------------------------------------------------------------


def entry(*lines: str, header: str = "HloModule m") -> Module:
    body = "".join(f"  {line}\n" for line in lines)
    return parse_module(f"{header}\n\nENTRY e {{\n{body}}}\n")


def compare(before: Module, after: Module, *, seeds: int = 3) -> Mismatch | None:
    return Reference(before, RunSettings(seeds)).compare(after)


P, Q = "p = f32[64]{0} parameter(0)", "q = f32[64]{0} parameter(1)"
SUM = entry(P, Q, "ROOT s = f32[64]{0} add(p, q)")


def test_rounding_is_no_difference_unless_data_is_only_moved() -> None:
    nearly = "n = f32[64]{0} multiply(p, c) ROOT r = f32[64]{0} add(n, q)"
    one = "o = f32[] constant(1.00001) c = f32[64]{0} broadcast(o), dimensions={}"
    assert compare(SUM, entry(P, Q, one, nearly)) is None
    moves = entry(P, "ROOT r = f32[64]{0} reverse(p), dimensions={0}")
    rounds = entry(
        P, one, "n = f32[64]{0} multiply(p, c) ROOT r = f32[64]{0} reverse(n), dimensions={0}"
    )
    assert compare(moves, rounds) is None, "the second one computes"
    table = "p = s32[64] parameter(0) ROOT r = f32[64] broadcast(c), dimensions={}"
    constants = (entry(f"c = f32[] constant({value})", table) for value in ("1", "1.00001"))
    assert compare(*constants) is not None


@pytest.mark.parametrize(
    ("line", "moves"),
    [
        ("ROOT r = f32[64] copy(p)", True),
        ("ROOT r = f32[64] maximum(p, p)", True),
        ("ROOT r = f32[64] negate(p)", True),
        ("ROOT r = f32[64] add(p, p)", False),
        ("ROOT r = bf16[64] convert(p)", False),
        ("i = s32[64] iota(), iota_dimension=0 ROOT r = s32[64] add(i, i)", True),
        ("ROOT r = s32[64] convert(p)", True),
        ("ROOT r = pred[64] compare(p, p), direction=LT", True),
    ],
)
def test_which_modules_only_move_data(line: str, moves: bool) -> None:
    assert only_moves_data(entry(P, line)) == moves


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([P, "ROOT r = f32[64]{0} copy(p)"], "2 parameters before, 1 after"),
        (
            ["p = f32[8,8]{1,0} parameter(0)", Q, "ROOT r = f32[64]{0} copy(q)"],
            "parameter 0 was f32[64]{0}, it is f32[8,8]{1,0}",
        ),
        (
            [P, "q = bf16[64]{0} parameter(1)", "ROOT r = f32[64]{0} copy(p)"],
            "parameter 1 was f32[64]{0}, it is bf16[64]{0}",
        ),
        (
            [P, Q, "ROOT r = (f32[64]{0}) tuple(p)"],
            "the result was f32[64]{0}, it is (f32[64]{0})",
        ),
        (
            [P, Q, "ROOT r = f32[63]{0} slice(p), slice={[0:63]}"],
            "the result was f32[64]{0}, it is f32[63]{0}",
        ),
    ],
)
def test_other_signatures_are_a_mismatch_without_a_place(lines: list[str], reason: str) -> None:
    assert compare(SUM, entry(*lines)) == Mismatch(reason)


def test_layouts_and_dynamic_sizes_are_no_other_signature() -> None:
    left = entry("p = f32[2,3]{1,0} parameter(0)", "ROOT r = f32[2,3]{1,0} copy(p)")
    right = entry("p = f32[2,3]{0,1} parameter(0)", "ROOT r = f32[2,3]{0,1} copy(p)")
    assert compare(left, right) is None
    bounded = entry("p = f32[2,<=3] parameter(0)", "ROOT r = f32[2,<=3] copy(p)")
    assert compare(left, bounded) is None


def test_another_dynamic_size_is_a_mismatch() -> None:
    lines = "p = f32[4] parameter(0)", "s = s32[] constant(3)"
    root = "ROOT r = f32[<=4] set-dimension-size(p, s), dimensions={0}"
    left = entry(*lines, root)
    right = entry(lines[0], "s = s32[] constant(2)", root)
    mismatch = compare(left, right)
    assert mismatch is not None
    assert mismatch.reason == "output was f32[3], it is f32[2] (seed 0)"


def test_the_reason_names_seed_and_device() -> None:
    header = "HloModule m, num_partitions=2"
    number = entry("ROOT d = u32[] partition-id()", header=header)
    zero = entry("ROOT d = u32[] constant(0)", header=header)
    mismatch = compare(number, zero)
    assert mismatch is not None
    assert (mismatch.seed, mismatch.device) == (0, 1)
    assert mismatch.reason == "output was 1, it is 0; 1 of 1 elements differ on device 1 (seed 0)"


def test_negative_integers_come_with_the_second_seed() -> None:
    p = "p = s32[64]{0} parameter(0)"
    left = entry(p, "ROOT r = s32[64]{0} abs(p)")
    right = entry(p, "ROOT r = s32[64]{0} copy(p)")
    assert compare(left, right, seeds=1) is None
    mismatch = compare(left, right, seeds=2)
    assert mismatch is not None
    assert mismatch.seed == 1


def test_dropped_mantissas_show_with_the_third_seed() -> None:
    right = entry(P, "b = bf16[64]{0} convert(p)", "ROOT r = f32[64]{0} convert(b)")
    left = entry(P, "ROOT r = f32[64]{0} copy(p)")
    assert compare(left, right, seeds=2) is None
    mismatch = compare(left, right, seeds=3)
    assert mismatch is not None
    assert mismatch.seed == 2


def test_nan_traps_tell_what_nan_does_apart() -> None:
    """`p - p` is zero except for NaN."""
    left = entry(P, "ROOT r = f32[64]{0} subtract(p, p)")
    right = entry(P, "z = f32[] constant(0)", "ROOT r = f32[64]{0} broadcast(z), dimensions={}")
    assert compare(left, right) is None
    assert Reference(left, RunSettings(inputs=Inputs("nan-trap"))).compare(right) is not None


def test_the_reference_has_to_run_the_other_need_not() -> None:
    infeed = entry("t = token[] after-all()", "i = (f32[2], token[]) infeed(t)",
                   "ROOT r = f32[2] get-tuple-element(i), index=0")  # fmt: skip
    zeros = entry("ROOT c = f32[2] constant({0, 0})")
    with pytest.raises(RunError, match="no host"):
        compare(infeed, zeros)
    assert compare(zeros, infeed) == Mismatch(
        "it cannot be run: %i: there is no host that could feed it data", 0
    )


def test_a_reference_can_be_compared_again() -> None:
    reference = Reference(SUM, RunSettings())
    assert reference.compare(SUM) is None
    other = entry(P, Q, "ROOT s = f32[64]{0} subtract(p, q)")
    assert reference.compare(other) is not None
    assert reference.compare(entry(P, Q, "ROOT s = f32[64]{0} add(q, p)")) is None
