"""Differences that rounding explains, and those it does not."""

from __future__ import annotations

import numpy as np
from tests.equivalence.programs import SUM, P, Q, compare, entry

from hloopt.equivalence import Reference, RunSettings, Tolerance
from hloopt.interpreter.inputs import GivenKey, Inputs

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
