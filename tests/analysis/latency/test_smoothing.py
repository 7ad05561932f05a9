"""Measured times made monotone in size."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.analysis.latency.smoothing import SmoothCurve, SmoothGrid, isotonic_medians

TIMES = st.floats(0.01, 1e6)
SIZES = st.integers(1, 1 << 20)


@given(st.lists(TIMES, max_size=12))
def test_medians_never_fall_and_were_measured(times: list[float]) -> None:
    smoothed = isotonic_medians(times)
    assert len(smoothed) == len(times)
    assert smoothed == sorted(smoothed)
    assert set(smoothed) <= set(times)
    ascending = sorted(times)
    assert isotonic_medians(ascending) == ascending


@pytest.mark.parametrize(
    ("times", "smoothed"),
    [
        ([], []),
        ([122.7, 30, 31, 43.1], [30, 30, 31, 43.1]),
        ([1, 9, 2, 3, 10], [1, 2, 2, 3, 10]),
        ([3, 2, 1], [2, 2, 2]),
        ([2, 1], [1, 1]),
    ],
)
def test_an_outlier_moves_nothing_far(times: list[float], smoothed: list[float]) -> None:
    assert isotonic_medians(times) == smoothed


@given(st.dictionaries(SIZES, TIMES, min_size=1, max_size=8), st.lists(SIZES, min_size=2))
def test_more_bytes_take_no_less(times: dict[int, float], sizes: list[int]) -> None:
    curve = SmoothCurve(times)
    found = [curve.time(size) for size in sorted(sizes)]
    assert all(more >= less * (1 - 1e-12) for less, more in pairwise(found))
    assert curve.time(0) == 0


def test_between_and_beyond_measured_sizes() -> None:
    curve = SmoothCurve({1024: 10, 2048: 20, 4096: 50})
    assert [curve.time(size) for size in (1, 1024, 1536, 2048, 3072)] == [10, 10, 15, 20, 35]
    assert curve.time(8192) == 100  # the throughput of the largest


@given(st.lists(TIMES, min_size=8, max_size=8), st.lists(SIZES, min_size=6, max_size=6))
def test_larger_products_take_no_less(times: list[float], sizes: list[int]) -> None:
    grid = SmoothGrid([[16, 64], [16, 256], [64, 128]], times)
    low = [min(sizes[place], sizes[place + 3]) for place in range(3)]
    high = [max(sizes[place], sizes[place + 3]) for place in range(3)]
    assert grid.time(low) <= grid.time(high) * (1 + 1e-9)
    assert grid.time([0, 1, 1]) == 0


def test_a_grid_in_order_stays_as_it_is() -> None:
    axes = [[1, 4], [1, 2, 8]]
    places = list(product(*axes))
    grid = SmoothGrid(axes, [rows * columns for rows, columns in places])
    assert [grid.time(place) for place in places] == [a * b for a, b in places]
    assert grid.time([2, 4]) == 8
    assert grid.time([8, 16]) == 8 * 16


def test_a_grid_out_of_order_meets_in_the_middle() -> None:
    grid = SmoothGrid([[1, 2, 4]], [8, 2, 9])
    assert [grid.time([size]) for size in (1, 2, 4)] == [4, 4, 9]
