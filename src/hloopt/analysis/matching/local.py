"""Pairs of nodes that are alone with what is next to them, whatever is further away."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from hloopt.analysis.matching.contexts import refine
from hloopt.analysis.matching.graph import PairGraph, Pairs
from hloopt.analysis.matching.state import MatchState, is_plausible, unique_pairs

_RADIUS = 2


def pair_local(state: MatchState) -> int:
    """Pair nodes whose near neighbourhood no other unmatched node of their side has.

    First that of two edges around, then of one, then the node alone with its op_name, then without
    where the other side has none of that op_name. Returns how many pairs.
    """
    graph = state.graph
    nodes = graph.unmatched()
    keys = list(graph.tokens)
    for node in nodes:
        keys[node] = state.labels[node]
    rings = [keys]
    for _ in range(_RADIUS):
        rings.append(refine(graph, rings[-1], nodes))
    for ring in reversed(rings[1:]):
        found = _pair_unique(graph, ring, nodes)
        if found:
            return found
    origins = state.origins(nodes)
    found = _pair_unique(graph, origins, nodes)
    return found or _pair_unique(graph, state.labels, one_sided(graph, origins))


def pair_by_origin(state: MatchState) -> int:
    """Pair nodes of one label and one op_name where both sides have as many; returns how many."""
    graph = state.graph
    groups: dict[tuple[int, str], Pairs] = {}
    nodes = [node for walk in graph.walks() for node in walk if graph.partner[node] < 0]
    for node, key in state.origins(nodes).items():
        if key[1]:
            groups.setdefault(key, ([], []))[node >= graph.split].append(node)
    found = 0
    for old, new in groups.values():
        if len(old) == len(new):
            for pair in state.witness.pairs(old, new):
                if is_plausible(graph, *pair):
                    graph.pair(*pair)
                    found += 1
    return found


def one_sided(graph: PairGraph, keys: Mapping[int, Hashable]) -> list[int]:
    """Nodes in `keys` whose key no node of the other side has."""
    sides: tuple[set[Hashable], set[Hashable]] = set(), set()
    for node, key in keys.items():
        sides[node >= graph.split].add(key)
    return [node for node, key in keys.items() if key not in sides[node < graph.split]]


def _pair_unique(
    graph: PairGraph, keys: Sequence[Hashable] | Mapping[int, Hashable], nodes: Iterable[int]
) -> int:
    found = 0
    for pair in unique_pairs(graph, keys, nodes):
        if is_plausible(graph, *pair):
            graph.pair(*pair)
            found += 1
    return found
