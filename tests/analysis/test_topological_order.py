"""An order that follows changes of edges."""

from __future__ import annotations

import random

import pytest

from hloopt.analysis.topological_order import TopologicalOrder
from hloopt.diagnostics import HloVerifyError


def assert_ordered(order: TopologicalOrder) -> None:
    assert [order.at[place] for place in order.position] == list(range(len(order.at)))
    for node, sources in enumerate(order.sources):
        assert all(order.position[source] < order.position[node] for source in sources)
        assert all(node in order.followers[source] for source in sources)
    edges = sum(len(list(followers)) for followers in order.followers)
    assert edges == sum(map(len, order.sources))


@pytest.mark.parametrize("seed", range(30))
def test_nodes_stay_behind_their_sources(seed: int) -> None:
    chance = random.Random(seed)
    count = 15
    order = TopologicalOrder([[node - 1] if node % 3 else [] for node in range(count)])
    for _ in range(40):
        wanted = chance.sample(range(count), count)  # sources stand before a node in this order
        changed = chance.sample(range(count), chance.choice((1, 1, count)))
        sources = {
            node: chance.sample(wanted[: wanted.index(node)], min(2, wanted.index(node)))
            for node in changed
        }
        if len(changed) < count and is_cyclic({**dict(enumerate(order.sources)), **sources}):
            continue
        order.change(sources)
        assert_ordered(order)


def is_cyclic(sources: dict[int, list[int]]) -> bool:
    left = set(sources)
    while free := {node for node in left if left.isdisjoint(sources[node])}:
        left -= free
    return bool(left)


def test_a_cycle_is_an_error() -> None:
    order = TopologicalOrder([[], [0], [1]])
    with pytest.raises(HloVerifyError, match="depends on itself"):
        order.change({0: [2]})


def test_edges_can_turn_round_together() -> None:
    order = TopologicalOrder([[], [0], [1]])
    order.change({0: [1], 1: [2], 2: []})
    assert order.at == [2, 1, 0]
    assert_ordered(order)
