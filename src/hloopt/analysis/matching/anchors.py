"""Anchors: pair nodes whose context is unique on their side."""

from __future__ import annotations

from hloopt.analysis.matching.contexts import Contexts
from hloopt.analysis.matching.disputes import settle
from hloopt.analysis.matching.state import MatchState, unique_pairs

_MOST_ROUNDS = 20


def pair_unique(state: MatchState) -> int:
    """Pair nodes that alone on each side compute their value; returns how many pairs.

    Nodes whose users are unique as well come first. Where operands and users propose different
    partners, as in a row of equal layers one of which is gone, `settle` decides. Repeated while it
    finds pairs: each makes more contexts unique.
    """
    graph = state.graph
    found = 0
    for _ in range(_MOST_ROUNDS):
        nodes = graph.unmatched()
        contexts = Contexts(state, nodes)
        pairs = unique_pairs(graph, contexts.both, nodes)
        for pair in pairs:
            graph.pair(*pair)
        nodes = graph.unmatched()
        by_leaves = unique_pairs(graph, contexts.leaves, nodes)
        number = len(pairs)
        if by_leaves:
            by_roots = unique_pairs(graph, contexts.roots, nodes)
            number += settle(state, by_leaves, by_roots)
        found += number
        if not number or not graph.is_open:
            break
    return found


def pair_by_use(state: MatchState) -> int:
    """Pair nodes whose transitive users are unique on each side; returns how many pairs.

    Weaker than equal values: in a chain of equal steps one of which is gone, all before it are
    used one step earlier.
    """
    graph = state.graph
    nodes = graph.unmatched()
    found = 0
    for pair in unique_pairs(graph, Contexts(state, nodes).roots, nodes):
        if state.has_no_rival_operands(*pair):
            graph.pair(*pair)
            found += 1
    return found
