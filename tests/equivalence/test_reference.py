"""Whether modules compute the same: verdicts, and what they rest on."""

from __future__ import annotations

import numpy as np
import pytest

from hloopt.equivalence import Mismatch, Reference, RunSettings, Tolerance
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.exactness import only_moves_data
from hloopt.interpreter.inputs import GivenKey, Inputs
from hloopt.ir.module import Module
from hloopt.text import parse_module


def entry(*lines: str, header: str = "HloModule m") -> Module:
    body = "".join(f"  {line}\n" for line in lines)
    return parse_module(f"{header}\n\nENTRY e {{\n{body}}}\n")


def compare(before: Module, after: Module, *, seeds: int = 3) -> Mismatch | None:
    return Reference(before, RunSettings(seeds)).compare(after)


P, Q = "p = f32[64]{0} parameter(0)", "q = f32[64]{0} parameter(1)"
SUM = entry(P, Q, "ROOT s = f32[64]{0} add(p, q)")


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


# -- what rounding explains -----------------------------------------------------------------------

CANCELS = "a = f32[64] multiply(p, q) b = f32[64] add(a, c) d = f32[64] subtract(b, c)"
LARGE = "l = f32[] constant(3e6) c = f32[64] broadcast(l), dimensions={}"


def test_a_program_that_amplifies_rounding_is_not_decided() -> None:
    """(p q + 3e6) - 3e6 keeps two bits behind the point; scaled up, the order of it shows."""
    left = entry(
        P, Q, LARGE, CANCELS, "s = f32[64] multiply(d, d)", "ROOT r = f32[64] exponential(d)"
    )
    right = entry(P, Q, "a = f32[64] multiply(p, q)", "ROOT r = f32[64] exponential(a)")
    found = Reference(left, RunSettings(seeds=3)).examine(right)
    assert found.mismatch is not None
    assert not found.mismatch.is_decided
    assert "which rounding may explain" in found.mismatch.reason
    assert "First amplified at %d (<text>:7)" in found.mismatch.reason
    assert compare(left, left) is None


def test_what_is_off_more_than_rounding_explains_differs_even_there() -> None:
    left = entry(P, Q, LARGE, CANCELS, "ROOT r = f32[64] exponential(d)")
    right = entry(
        P,
        Q,
        "a = f32[64] multiply(p, q)",
        "b = f32[64] multiply(a, a)",
        "ROOT r = f32[64] exponential(b)",
    )
    mismatch = compare(left, right)
    assert mismatch is not None
    assert mismatch.is_decided


def test_a_decision_that_rounding_turns_round_is_named() -> None:
    """x / 49 * 49 is x, or its neighbour: which is larger depends on one bit."""
    third = "l = f32[] constant(49) c = f32[64] broadcast(l), dimensions={} h = f32[] constant(1e3)"
    lines = [P, third, "b = f32[64] broadcast(h), dimensions={}", "d = f32[64] divide(p, c)"]
    back = ["m = f32[64] multiply(d, c)", "g = pred[64] compare(m, p), direction=GT"]
    left = entry(*lines, *back, "ROOT r = f32[64] select(g, b, p)")
    swapped = ["n = f32[64] multiply(p, c)", "m = f32[64] divide(n, c)"]
    right = entry(*lines, *swapped, back[1], "ROOT r = f32[64] select(g, b, p)")
    mismatch = compare(left, right)
    assert mismatch is not None
    assert not mismatch.is_decided
    assert "First amplified at %g (<text>:9): a decision that falls the other way" in (
        mismatch.reason
    )


def test_integers_that_rounding_changes_are_not_decided() -> None:
    third = "l = f32[] constant(3) c = f32[64] broadcast(l), dimensions={} d = f32[64] divide(p, c)"
    left = entry(P, third, "m = f32[64] multiply(d, c)", "ROOT r = s32[64] convert(m)")
    right = entry(
        P,
        third,
        "n = f32[64] multiply(p, c)",
        "m = f32[64] divide(n, c)",
        "ROOT r = s32[64] convert(m)",
    )
    mismatch = compare(left, right)
    assert mismatch is None or not mismatch.is_decided
    other = entry(P, third, "m = f32[64] add(d, c)", "ROOT r = s32[64] convert(m)")
    mismatch = compare(left, other)
    assert mismatch is not None
    assert mismatch.is_decided


def test_tolerances_that_are_given_decide_alone() -> None:
    one = "o = f32[] constant(1.001) c = f32[64]{0} broadcast(o), dimensions={}"
    right = entry(P, Q, one, "s = f32[64] add(p, q)", "ROOT r = f32[64] multiply(s, c)")
    for tolerance, is_equal in (
        (None, False),
        (Tolerance(relative=2e-3), True),
        (Tolerance(relative=5e-4), False),
        (Tolerance(absolute=0.01), True),
        (Tolerance(absolute=1e-4), False),
        (Tolerance(relative=5e-4, absolute=3e-3), True),
        (Tolerance(), False),
    ):
        settings = RunSettings(tolerance=tolerance)
        assert (Reference(SUM, settings).compare(right) is None) == is_equal, tolerance


def test_outputs_that_are_nowhere_finite_say_nothing() -> None:
    left = entry(
        P,
        "n = f32[64] abs(p)",
        "m = f32[64] negate(n)",
        "s = f32[64] sqrt(m)",
        "t = f32[64] subtract(s, n)",
        "i = f32[64] divide(t, m)",
        "ROOT l = f32[64] log(m)",
    )
    right = entry(P, "n = f32[64] abs(p)", "m = f32[64] negate(n)", "ROOT l = f32[64] log(m)")
    mismatch = compare(left, right)
    assert mismatch is not None
    assert not mismatch.is_decided
    assert "output is nowhere finite in either module on these inputs, from %l (" in mismatch.reason


def test_positive_numbers_are_made_up_for_roots_and_logarithms() -> None:
    left = entry(P, "s = f32[64] sqrt(p)", "ROOT l = f32[64] log(s)")
    right = entry(
        P,
        "s = f32[64] log(p)",
        "h = f32[] constant(0.5)",
        "b = f32[64] broadcast(h), dimensions={}",
        "ROOT l = f32[64] multiply(s, b)",
    )
    found = Reference(left, RunSettings()).examine(right)
    assert found.mismatch is None
    assert found.outputs[0].not_finite == 0


def test_with_all_inputs_given_programs_run_once() -> None:
    given = {GivenKey(0): np.ones(64), GivenKey(1): np.zeros(64)}
    for arrays, seeds in ((given, 1), ({GivenKey(0): np.ones(64)}, 3)):
        settings = RunSettings(inputs=Inputs(given=arrays))
        assert Reference(SUM, settings).examine(SUM).seeds == seeds


# -- what else a program does ---------------------------------------------------------------------

TOKEN = "t = token[] after-all()"
HEADER = (P, TOKEN, "x = f32[64] negate(p)")
ROOT = "ROOT r = f32[64] add(p, x)"
LOG = 'c{0} = f32[64] custom-call(p), custom_call_target="{1}", custom_call_has_side_effect=true'


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        (["o = token[] outfeed(x, t)"], [], "outfeed %o (<text>:7) ran once, it runs never"),
        ([], ["o = token[] outfeed(x, t)"], "outfeed %o (<text>:7) ran never, it runs once"),
        (["o = token[] outfeed(x, t)"], ["o = token[] outfeed(p, t)"], "outfeed %o{0}[0] was "),
        (
            ["k = s32[2] constant({1,2})", "o = token[] outfeed(k, t)"],
            ["o = token[] outfeed(x, t)"],
            "outfeed %o (<text>:8) got (s32[2], token[]), it gets (f32[64], token[])",
        ),
        ([LOG.format(1, "a")], [LOG.format(1, "b")], 'custom call "a" %c1 (<text>:7) ran once'),
        (
            [LOG.format(1, "a"), LOG.format(2, "b") + ", control-predecessors={c1}"],
            [LOG.format(2, "b"), LOG.format(1, "a") + ", control-predecessors={c2}"],
            'custom call "b" %c2 (<text>:8) ran after custom call "a" %c1 (<text>:7), '
            "it runs before",
        ),
    ],
)
def test_other_effects_differ(left: list[str], right: list[str], reason: str) -> None:
    mismatch = compare(entry(*HEADER, *left, ROOT), entry(*HEADER, *right, ROOT))
    assert mismatch is not None
    assert mismatch.is_decided
    assert mismatch.reason.startswith(reason)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["o = token[] outfeed(x, t)"], ["o = token[] outfeed(x, t)"]),
        # Nothing says which of the two comes first.
        ([LOG.format(1, "a"), LOG.format(2, "b")], [LOG.format(2, "b"), LOG.format(1, "a")]),
        ([LOG.format(1, "Sharding")], []),
        (['c1 = f32[64] custom-call(p), custom_call_target="a"'], []),
    ],
)
def test_the_same_effects_are_equal(left: list[str], right: list[str]) -> None:
    assert compare(entry(*HEADER, *left, ROOT), entry(*HEADER, *right, ROOT)) is None


BRANCHES = """HloModule m
x { xa = f32[8] parameter(0) ROOT xr = f32[8] negate(xa) }
y { ya = f32[8] parameter(0) ROOT yr = f32[8] add(ya, ya) }
z { za = f32[8] parameter(0) ROOT zr = f32[8] multiply(za, za) }
ENTRY e {
  s = s32[] parameter(0)
  p = f32[8] parameter(1)
  ROOT r = f32[8] conditional(s, p, p, p), branch_computations={x, y, z}
}
"""


@pytest.mark.parametrize("branches", ["z, y, z", "x, x, z", "x, y, y"])
def test_each_branch_that_a_parameter_selects_runs(branches: str) -> None:
    right = BRANCHES.replace("{x, y, z}", f"{{{branches}}}")
    assert compare(parse_module(BRANCHES), parse_module(right)) is not None


def test_branches_and_bodies_that_never_ran_are_told() -> None:
    text = BRANCHES.replace(
        "s = s32[] parameter(0)", "k = s32[] parameter(0) s = s32[] constant(1)"
    )
    found = Reference(parse_module(text), RunSettings()).examine(parse_module(text))
    assert found.mismatch is None
    assert found.notes == [
        "branch 0 (%x) of %r (<text>:8) never ran",
        "branch 2 (%z) of %r (<text>:8) never ran",
    ]
    loop = """HloModule m
    c { i = s32[] parameter(0) k = s32[] constant(0) ROOT l = pred[] compare(i, k), direction=LT }
    b { i = s32[] parameter(0) ROOT n = s32[] negate(i) }
    ENTRY e { z = s32[] constant(7) ROOT w = s32[] while(z), condition=c, body=b }
    """
    found = Reference(parse_module(loop), RunSettings()).examine(parse_module(loop))
    assert found.notes == ["the body of loop %w (<text>:4) never ran"]


def test_what_overflows_is_told_apart() -> None:
    p, q = "p = u8[8] parameter(0)", "q = u8[8] parameter(1)"
    left = entry(p, q, "ROOT r = u8[8] add(p, q)")
    right = entry(
        *(p, q, "a = u16[8] convert(p)", "b = u16[8] convert(q)", "s = u16[8] add(a, b)"),
        *("m = u16[] constant(255)", "n = u16[8] broadcast(m), dimensions={}"),
        *("c = u16[8] minimum(s, n)", "ROOT r = u8[8] convert(c)"),
    )
    assert compare(left, right) is not None


def test_a_program_that_goes_on_and_on_differs_from_one_that_ends() -> None:
    ends = """HloModule m
    cond { x = s32[] parameter(0) ROOT t = pred[] constant(false) }
    same { ROOT x = s32[] parameter(0) }
    ENTRY e { p = s32[] parameter(0) ROOT w = s32[] while(p), condition=cond, body=same }
    """
    endless = ends.replace("constant(false)", "constant(true)")
    for steps, is_decided in ((1000, True), (100, False)):
        mismatch = Reference(parse_module(ends), RunSettings(steps=steps)).compare(
            parse_module(endless)
        )
        assert mismatch is not None
        assert mismatch.is_decided == is_decided


def test_special_values_count_as_what_is_to_be_preserved_says() -> None:
    zero = "z = f32[] constant(0) c = f32[64]{0} broadcast(z), dimensions={}"
    left = entry(P, zero, "ROOT r = f32[64]{0} multiply(p, c)")
    right = entry(P, zero, "ROOT r = f32[64]{0} copy(c)")
    reference = Reference(left, RunSettings())
    found = reference.compare(right)
    assert found is not None
    assert found.special == "NaN"
    assert found.reason.startswith("on special values alone, output[")
    comparison = reference.examine(right, "finite")
    assert comparison.mismatch is None
    assert comparison.specials == ["NaN", "infinities", "zeros"]
    assert len(comparison.on_specials) == 2
    assert reference.compare(right, "bits") is not None


def test_the_sign_of_zero_is_told_and_counts_among_bits() -> None:
    zero = "z = f32[] constant(0) c = f32[64]{0} broadcast(z), dimensions={}"
    left, right = (
        entry(P, zero, f"ROOT r = f32[64]{{0}} {line}") for line in ("negate(p)", "subtract(c, p)")
    )
    reference = Reference(left, RunSettings())
    comparison = reference.examine(right)
    assert comparison.mismatch is None
    assert any(note.startswith("the signs of zeros: output[") for note in comparison.notes)
    found = reference.compare(right, "bits")
    assert found is not None
    assert "was -0.0, it is 0.0" in found.reason


def test_among_bits_only_sums_of_ours_may_be_rounded_otherwise() -> None:
    narrow = "b = bf16[64]{0} convert(p) c = f32[64]{0} convert(b)"
    left, right = (
        entry(P, narrow, "ROOT r = f32[64]{0} add(c, c)"),
        entry(P, "ROOT r = f32[64]{0} add(p, p)"),
    )
    reference = Reference(left, RunSettings())
    assert reference.compare(right, "rounding") is None
    assert reference.compare(right, "bits") is not None
    dots = [
        entry(
            "p = f32[40,50]{1,0} parameter(0)",
            "q = f32[50,30]{1,0} parameter(1)",
            *lines,
        )
        for lines in (
            ("ROOT d = f32[40,30] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",),
            (
                "t = f32[50,40] transpose(p), dimensions={1,0}",
                "d = f32[30,40] dot(q, t), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
                "ROOT r = f32[40,30] transpose(d), dimensions={1,0}",
            ),
        )
    ]
    assert Reference(dots[0], RunSettings()).compare(dots[1], "bits") is None


def test_special_values_that_cannot_be_run_are_told() -> None:
    """A scatter index is no trip count, but this one is both: the loop would take too long."""
    loop = """HloModule m
    body { i = s32[] parameter(0) k = s32[] constant(1) ROOT n = s32[] subtract(i, k) }
    more { i = s32[] parameter(0) z = s32[] constant(0)
      ROOT c = pred[] compare(i, z), direction=NE }
    ENTRY e { i = s32[] parameter(0) p = f32[10] parameter(1)
      w = s32[] while(i), condition=more, body=body
      ROOT s = f32[1] dynamic-slice(p, i), dynamic_slice_sizes={1} }"""
    module = parse_module(loop)
    comparison = Reference(module, RunSettings(steps=1000)).examine(module)
    assert comparison.mismatch is None
    assert "negative indices" not in comparison.specials
    assert any(note.startswith("inputs with negative indices: ") for note in comparison.notes)


def test_given_inputs_and_those_of_one_kind_hold_nothing_special() -> None:
    assert Reference(SUM, RunSettings(inputs=Inputs("iota"))).examine(SUM).specials == []


def test_what_never_ran_is_named() -> None:
    text = """HloModule m
    up { p = f32[8] parameter(0) ROOT r = f32[8] add(p, p) }
    down { p = f32[8] parameter(0) ROOT r = f32[8] negate(p) }
    body { p = f32[8] parameter(0) ROOT r = f32[8] call(p), to_apply=down }
    never { p = f32[8] parameter(0) ROOT c = pred[] constant(false) }
    ENTRY e { p = f32[8] parameter(0) i = s32[] constant(0)
      choice = f32[8] conditional(i, p, p), branch_computations={up, down}
      ROOT w = f32[8] while(choice), condition=never, body=body }"""
    module = parse_module(text)
    notes = Reference(module, RunSettings()).examine(module).notes
    assert [note.partition(" (<")[0] for note in notes] == [
        "branch 1 (%down) of %choice",
        "the body of loop %w",
    ]


def test_sparse_operands_are_a_message() -> None:
    module = entry(
        "p = f32[1,8]{1,0} parameter(0)",
        "k = (f32[2,1]{1,0}, s32[2,1]{1,0}) parameter(1)",
        "ROOT r = f32[1,1]{1,0} convolution(p, k), dim_labels=bf_io->bf, "
        "sparsity_config={ rhs={sparsity=1x4 dimension=0 stride=1} }",
    )
    with pytest.raises(RunError, match="sparse operands are not supported"):
        compare(module, module)
