"""Dominators, held to what the word means."""

from __future__ import annotations

import random

import pytest

from hloopt.analysis.dominance import Dominators


def ways_without(avoided: int, predecessors: list[list[int]]) -> set[int]:
    """The nodes that some way from a root reaches without passing one node."""
    found: set[int] = set()
    for node, above in enumerate(predecessors):
        if node != avoided and (not above or not found.isdisjoint(above)):
            found.add(node)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_node_dominates_what_no_way_reaches_without_it(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randrange(1, 40)
    predecessors = [
        sorted(chance.sample(range(node), chance.randrange(min(node, 3) + 1)))
        for node in range(count)
    ]
    dominators = Dominators(range(count), predecessors.__getitem__)
    for a in range(count):
        avoidable = ways_without(a, predecessors)
        for b in range(count):
            assert dominators.dominates(a, b) == (b not in avoidable), (a, b, predecessors)


def test_long_and_wide_graphs_are_no_trouble() -> None:
    count = 200_000  # a ladder: two nodes per step, both called by both of the step above
    dominators = Dominators(
        range(count), lambda node: [] if node == 0 else {(node - 1) // 2 * 2, max(0, node - 2)}
    )
    assert dominators.dominates(0, count - 1)
    assert not dominators.dominates(3, 6)
