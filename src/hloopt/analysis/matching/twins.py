"""Twins: pair nodes with equal contexts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hloopt.analysis.matching.contexts import Contexts, refine
from hloopt.analysis.matching.graph import PairGraph, Pairs
from hloopt.analysis.matching.state import MatchState

_REFINEMENTS = 3


def pair_twins(state: MatchState) -> int:
    """Pair nodes of one context if both sides have equally many of them; returns how many.

    Evidence or order decides one pair, whose neighbours follow, so that whole branches stay
    together. O(n log n) in unmatched nodes.
    """
    graph = state.graph
    nodes = graph.unmatched()
    keys = Contexts(state, nodes).both
    nodes = [n for sides in _even(graph, keys, nodes) for side in sides for n in side]
    if not nodes:
        return 0
    finer = [keys]
    for _ in range(_REFINEMENTS):
        finer.append(refine(state, finer[-1], nodes))
    return sum(_pair_classes(state, each, nodes) for each in reversed(finer))


def _even(graph: PairGraph, keys: Sequence[int], nodes: Iterable[int]) -> list[Pairs]:
    """Groups of unmatched nodes by key, if both sides have equally many."""
    classes: dict[int, Pairs] = {}
    for node in nodes:
        if graph.partner[node] < 0:
            classes.setdefault(keys[node], ([], []))[node >= graph.split].append(node)
    return [sides for sides in classes.values() if len(sides[0]) == len(sides[1])]


def _pair_classes(state: MatchState, keys: Sequence[int], nodes: Iterable[int]) -> int:
    graph, witness = state.graph, state.witness
    found = 0
    for sides in _even(graph, keys, nodes):
        for pair in witness.pairs(*sides):
            if graph.partner[pair[0]] < 0 and graph.partner[pair[1]] < 0:
                found += _pair_with_neighbours(state, keys, pair)
    return found


def _pair_with_neighbours(state: MatchState, keys: Sequence[int], pair: tuple[int, int]) -> int:
    """Make a pair, then pair neighbours with equal keys at equal positions, transitively."""
    graph, witness = state.graph, state.witness
    partner = graph.partner
    graph.pair(*pair)
    waiting = [pair]
    found = 1
    while waiting:
        old, new = waiting.pop()
        pairs = list(state.operand_pairs(old, new))
        users: dict[tuple[int, int], Pairs] = {}
        for side, node in enumerate((old, new)):
            for user, place in state.users[node]:
                if partner[user] < 0:
                    users.setdefault((keys[user], place), ([], []))[side].append(user)
        for olds, news in users.values():
            if len(olds) == len(news):
                pairs += witness.pairs(olds, news)
        for a, b in pairs:
            if partner[a] < 0 and partner[b] < 0 and keys[a] == keys[b]:
                graph.pair(a, b)
                waiting.append((a, b))
                found += 1
    return found
