"""Pairs of nodes whose context is unlike that of all others on their side."""

from __future__ import annotations

from hloopt.analysis.matching.contexts import Contexts
from hloopt.analysis.matching.disputes import settle
from hloopt.analysis.matching.state import MatchState, unique_pairs

_MOST_ROUNDS = 20


def pair_unique(state: MatchState) -> int:
    """Pair what only one node on each side computes; returns how many pairs.

    First what is also used in one way only, then the others; where both contexts propose partners
    and they differ, as in a row of equal layers one of which is gone, the dispute is settled.
    Repeated while that tells more apart: partners are told apart from all other nodes.
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
    """Pair what is used in a way in which nothing else on its side is; returns how many pairs.

    That says less than what a node computes: in a chain of equal steps one of which is gone, all
    before it are used one step earlier.
    """
    graph = state.graph
    nodes = graph.unmatched()
    found = 0
    for pair in unique_pairs(graph, Contexts(state, nodes).roots, nodes):
        if state.has_no_rival_operands(*pair):
            graph.pair(*pair)
            found += 1
    return found
