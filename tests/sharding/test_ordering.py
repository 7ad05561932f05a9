"""Best totals of choices of candidates, against all choices."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.sharding.ordering import Scored, best_totals

scores = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-4, 4).map(float)), min_size=1, max_size=3),
    max_size=4,
)


@given(scores)
def test_totals_are_those_of_the_best_of_all_choices(items: list[Scored]) -> None:
    found = best_totals(items)
    for number, row in enumerate(items):
        for index, candidate in enumerate(row):
            choices = product(*items[:number], [candidate], *items[number + 1 :])
            assert found[number][index] == pytest.approx(max(map(_total, choices)))


def _total(choice: tuple[tuple[int, float], ...]) -> float:
    backwards = sum(a[0] > b[0] for a, b in pairwise(choice))
    return sum(score for _, score in choice) - 5.0 * backwards


def test_a_collective_without_candidates_is_passed_over() -> None:
    assert best_totals([[(3, 1.0)], [], [(1, 1.0), (4, 0.0)]]) == [[1.0], [], [-3.0, 1.0]]
