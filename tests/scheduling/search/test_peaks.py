"""The peak of an order is the least limit that it keeps."""

from __future__ import annotations

import pytest
from tests.scheduling.search.exact.small_problems import small_problem

from hloopt.scheduling.search.order import Order


@pytest.mark.parametrize("seed", range(60))
def test_an_order_keeps_the_limit_of_its_peak_and_no_smaller_one(seed: int) -> None:
    """Buffers count that begin where they are used for the last time, too."""
    problem = small_problem(seed)
    order = Order(problem)
    peak = problem.memory.limit = order.peak()
    assert order.is_allowed(0, problem.nodes)
    problem.memory.limit = peak - 1
    assert not (peak and order.is_allowed(0, problem.nodes))
