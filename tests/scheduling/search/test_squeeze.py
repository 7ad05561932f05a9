"""Orders are changed so that less memory is needed at their peak."""

from __future__ import annotations

import pytest
from tests.scheduling.search.exact.small_problems import small_problem

from hloopt.scheduling.search.order import Order
from hloopt.scheduling.search.squeeze import squeeze

SEEDS = range(130)  # 7, 30, 34, 88 and 120 have several peaks, of which not all can be lowered


def squeezed(seed: int, share: float) -> tuple[int, Order, bool]:
    """The peak before, the order after it was to need a share of that, and whether it changed."""
    order = Order(small_problem(seed))
    before = order.peak()
    order.problem.memory.limit = 0  # whatever it was
    changed = squeeze(order, int(before * share))
    return before, order, changed


@pytest.mark.parametrize("seed", SEEDS)
def test_no_peak_is_higher_and_every_rule_is_kept(seed: int) -> None:
    before, order, changed = squeezed(seed, 0)
    problem = order.problem
    plain = Order(small_problem(seed))
    assert order.peak() <= before
    assert changed == (order.peak() < before)
    assert changed == (order.nodes != plain.nodes)
    assert sorted(order.nodes) == sorted(plain.nodes)
    for node, predecessors in enumerate(problem.predecessors):
        assert all(order.position[p] < order.position[node] for p in predecessors)
    problem.memory.limit = order.peak()
    assert order.is_allowed(0, list(order.nodes))


def test_some_peaks_are_lower() -> None:
    results = [squeezed(seed, 0) for seed in SEEDS]
    lower = [before for before, order, _ in results if order.peak() < before]
    assert len(lower) >= len(SEEDS) // 6


def test_an_order_that_fits_stays() -> None:
    for seed in SEEDS:
        _, order, changed = squeezed(seed, 1)
        assert not changed
        assert order.nodes == Order(small_problem(seed)).nodes


def test_no_more_is_moved_than_the_target_needs() -> None:
    for seed in SEEDS:
        before, all_of_it, _ = squeezed(seed, 0)
        if all_of_it.peak() < before:
            _, order, changed = squeezed(seed, (before - 1) / before)
            assert changed
            assert all_of_it.peak() <= order.peak() < before
