"""A module against a reference: signatures, inputs, the first array that differs."""

from __future__ import annotations

import pytest
from tests.equivalence.programs import SUM, P, Q, compare, entry

from hloopt.equivalence import Mismatch, Reference, RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.exactness import only_moves_data
from hloopt.interpreter.inputs import Inputs
from hloopt.text import parse_module


def test_rounding_is_no_difference_unless_data_is_only_moved() -> None:
    nearly = "n = f32[64]{0} multiply(p, c) ROOT r = f32[64]{0} add(n, q)"
    one = "o = f32[] constant(1.0000002) c = f32[64]{0} broadcast(o), dimensions={}"
    assert compare(SUM, entry(P, Q, one, nearly)) is None
    far = one.replace("1.0000002", "1.00001")
    assert compare(SUM, entry(P, Q, far, nearly)) is not None, "84 times what rounding does"
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
        (
            [P, "ROOT r = f32[64]{0} copy(p)"],
            "2 parameters before, 1 after: parameter 1 is there before only, f32[64] (<text>:5)",
        ),
        (
            ["s = s32[] parameter(0)", "ROOT r = f32[64]{0} broadcast(s), dimensions={}"],
            "2 parameters before, 1 after: parameter 0 was f32[64] (<text>:4), it is s32[] "
            "(<text>:4)",
        ),
        (
            ["p = f32[8,8]{1,0} parameter(0)", Q, "ROOT r = f32[64]{0} copy(q)"],
            "parameter 0 was f32[64] (<text>:4), it is f32[8,8] (<text>:4)",
        ),
        (
            [P, "q = bf16[64]{0} parameter(1)", "ROOT r = f32[64]{0} copy(p)"],
            "parameter 1 was f32[64] (<text>:5), it is bf16[64] (<text>:5)",
        ),
        (
            [P, Q, "ROOT r = (f32[64]{0}) tuple(p)"],
            "the result was f32[64] (<text>:6), it is (f32[64]) (<text>:6)",
        ),
        (
            [P, Q, "ROOT r = f32[63]{0} slice(p), slice={[0:63]}"],
            "output was f32[64] (<text>:6), it is f32[63] (<text>:6)",
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
    alone = compare(left, right, seeds=1)
    assert alone is not None
    assert alone.special == "integer extremes"
    mismatch = compare(left, right, seeds=2)
    assert mismatch is not None
    assert (mismatch.seed, mismatch.special) == (1, None)


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
    assert Reference(left, RunSettings()).compare(right, "finite") is None
    assert Reference(left, RunSettings(inputs=Inputs("nan-trap"))).compare(right) is not None


def test_the_reference_has_to_run_the_other_need_not() -> None:
    floats = entry(
        "s = u64[2]{0} constant({1, 2})",
        "i = (u64[2]{0}, f32[2]) rng-bit-generator(s), algorithm=rng_default",
        "ROOT r = f32[2] get-tuple-element(i), index=1",
    )
    zeros = entry("ROOT c = f32[2] constant({0, 0})")
    with pytest.raises(RunError, match="random bits are integers"):
        compare(floats, zeros)
    assert compare(zeros, floats) == Mismatch(
        "it cannot be run: %i: random bits are integers, not f32", 0, is_decided=False
    )


def test_a_reference_can_be_compared_again() -> None:
    reference = Reference(SUM, RunSettings())
    assert reference.compare(SUM) is None
    other = entry(P, Q, "ROOT s = f32[64]{0} subtract(p, q)")
    assert reference.compare(other) is not None
    assert reference.compare(entry(P, Q, "ROOT s = f32[64]{0} add(q, p)")) is None


def test_of_tuples_the_first_array_that_is_other_is_named() -> None:
    left = entry("p = (f32[2], (s32[3], f32[4])) parameter(0)", "ROOT z = s32[] constant(0)")
    right = entry("p = (f32[2], (s32[3], f32[5])) parameter(0)", "ROOT z = s32[] constant(0)")
    mismatch = compare(left, right)
    assert mismatch is not None
    assert mismatch.reason == ("parameter 0{1}{1} was f32[4] (<text>:4), it is f32[5] (<text>:4)")


def test_nothing_runs_where_signatures_differ() -> None:
    endless = """HloModule m
    always { x = s32[] parameter(0) ROOT t = pred[] constant(true) }
    same { ROOT x = s32[] parameter(0) }
    ENTRY e { p = s32[] parameter(0) ROOT w = s32[] while(p), condition=always, body=same }
    """
    other = endless.replace(
        "s32[] parameter(0) ROOT w = s32[] while(p)",
        "s64[] parameter(0) i = s32[] convert(p) ROOT w = s32[] while(i)",
    )
    reference = Reference(parse_module(endless), RunSettings(steps=None))
    mismatch = reference.compare(parse_module(other))
    assert mismatch is not None
    assert mismatch.reason.startswith("parameter 0 was s32[]")


def test_a_schedule_alone_does_not_make_a_program_a_partitioned_one() -> None:
    sharded = """HloModule m, num_partitions=4
    ENTRY e { p = f32[8] parameter(0), sharding={devices=[4]<=[4]}
      ROOT n = f32[8] negate(p), sharding={devices=[4]<=[4]} }
    """
    scheduled = sharded.replace("=4\n", "=4, is_scheduled=true\n", 1)
    before, after = parse_module(sharded), parse_module(scheduled)
    assert compare(before, after) is None
    assert compare(after, before) is None
    other = parse_module(scheduled.replace("negate", "abs"))
    mismatch = compare(before, other)
    assert mismatch is not None
    assert mismatch.reason.startswith("output[0] was ")
