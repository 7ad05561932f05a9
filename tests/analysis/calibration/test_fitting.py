"""The robust fit of figures to measured times."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.analysis.calibration.fitting import Fit, fit, weighted_median
from hloopt.analysis.calibration.samples import Kind, Name, Part, Sample
from hloopt.ir import Instruction
from hloopt.text import parse_module

A, B = Name(Kind.MEMORY), Name(Kind.MATRIX, "bf16")


def instruction() -> Instruction:
    return parse_module("ENTRY e { ROOT p = f32[] parameter(0) }").entry.root


NOTHING = instruction()


def sample(measured: float, *parts: tuple[Name, float], launch: float = 0.0) -> Sample:
    return Sample(NOTHING, measured, tuple(Part(*part) for part in parts), launch)


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=1))
def test_half_of_the_weight_is_below_a_median(values: list[tuple[float, float]]) -> None:
    middle = weighted_median(values)
    total = sum(weight for _, weight in values)
    assert sum(weight for value, weight in values if value < middle) <= total / 2 * (1 + 1e-9)
    assert sum(weight for value, weight in values if value > middle) <= total / 2 * (1 + 1e-9)


def test_figures_are_found_though_one_in_five_is_an_outlier() -> None:
    dice = random.Random(3)
    slow = {A: 1.5, B: 2.5}
    samples = []
    for number in range(200):
        parts = (A, dice.uniform(1, 9)), (B, dice.uniform(1, 9))
        time = max(seconds * slow[figure] for figure, seconds in parts)
        samples.append(sample(time * (20 if number % 5 == 0 else 1), *parts))
    found = fit(samples)
    assert found.slowdowns[A] == pytest.approx(1.5, rel=0.05)
    assert found.slowdowns[B] == pytest.approx(2.5, rel=0.05)


def test_two_instructions_change_no_figure() -> None:
    two = [sample(3.0, (A, 1.0)), sample(3.0, (A, 1.0))]
    assert fit(two).slowdowns == {}
    assert fit([*two, two[0]]).slowdowns == {A: 3.0}
    assert fit([]) == Fit()


def test_no_fit_is_worse_than_none() -> None:
    """Every bound changes with the first round, and it fits less: the target stays as it is."""
    samples = [sample(1.0, (A, 1.0), (B, 0.9)) for _ in range(4)]
    assert all(fit(samples).time(each) == 1.0 for each in samples)


def test_a_launch_is_where_the_lines_begin() -> None:
    samples = [sample(7.0 + 2 * s, (A, s), launch=1.0) for s in (1.0, 2.0, 3.0, 5.0)]
    found = fit([*samples, sample(90.0, (A, 4.0), launch=1.0)])
    assert found.launch == pytest.approx(7.0)
    assert found.slowdowns[A] == pytest.approx(2.0)
    assert found.time(sample(0.0, (A, 1.0))) == pytest.approx(2.0)  # no launch of its own


def test_a_launch_is_at_least_0_and_leaves_a_twentieth_of_the_shortest() -> None:
    below = [sample(2 * s - 1, (A, s), launch=30.0) for s in (1.0, 2.0, 3.0)]
    assert fit(below).launch == 0.0
    falling = [sample(9 - 2 * s, (A, s), launch=30.0) for s in (1.0, 2.0, 3.0)]
    assert fit(falling).launch == pytest.approx(0.95 * 7)


def test_the_launch_of_the_target_stays_where_that_fits_better() -> None:
    samples = [sample(4.0 + s, (A, s), launch=4.0) for s in (1.0, 2.0, 3.0)]
    assert fit(samples).launch is None


def test_a_figure_changes_alone_where_all_at_once_fit_worse() -> None:
    """The outliers of B would move its bound up to where it also bounds what A explains."""
    rows = [(2.0, 1.0, 0.5)] * 9 + [(30.0, 1.0, 1.1)] * 4
    samples = [sample(time, (A, a), (B, b)) for time, a, b in rows]
    found = fit(samples)
    assert sum(abs(found.time(s) - s.measured) for s in samples) < sum(
        abs(Fit().time(s) - s.measured) for s in samples
    )


@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0), (1.0, 2.0)])
def test_one_size_or_two_instructions_tell_no_launch(sizes: tuple[float, ...]) -> None:
    assert fit([sample(5.0, (A, s), launch=1.0) for s in sizes]).launch is None


def test_a_launch_longer_than_what_was_measured_leaves_a_twentieth() -> None:
    found = fit([sample(1.0, (A, 1.0), launch=9.0) for _ in range(3)])
    assert found.slowdowns == {A: pytest.approx(0.05)}
