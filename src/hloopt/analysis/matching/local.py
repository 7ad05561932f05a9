"""Pairs of nodes that are alone with what is next to them, whatever is further away."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from hloopt.analysis.matching.contexts import refine
from hloopt.analysis.matching.graph import PairGraph, Pairs
from hloopt.analysis.matching.state import MatchState, unique_pairs

_RADIUS = 2
_Test = Callable[[int, int], bool]


def pair_local(state: MatchState) -> int:
    """Pair nodes whose near neighbourhood no other unmatched node of their side has.

    First that of two edges around, then of one, then the node alone with its op_name, then without
    where the other side has none of that op_name; only nodes that read partners: by what they are
    used for they may be those before or after in a chain. Returns how many pairs.
    """
    return _pair_local(state, state.reads_partners)


def pair_local_by_use(state: MatchState) -> int:
    """The same for nodes that partners read."""
    return _pair_local(state, state.is_read_by_partners)


def pair_remote(state: MatchState) -> int:
    """The same for nodes that are not next to any partners."""
    return _pair_local(state, state.is_plausible)


def pair_displaced(state: MatchState) -> int:
    """Pair nodes that are alone with the labels next to them, though partners of these differ.

    So is the loss where a last layer is added: what it reads and what reads it are others now, of
    the same kind.
    """
    graph = state.graph
    nodes = graph.unmatched()
    ring = refine(state, state.labels, nodes)
    return _pair_unique(graph, ring, nodes, state.has_no_rival_operands)


def _pair_local(state: MatchState, accept: _Test) -> int:
    graph = state.graph
    nodes = graph.unmatched()
    keys = list(graph.tokens)
    for node in nodes:
        keys[node] = state.labels[node]
    rings = [keys]
    for _ in range(_RADIUS):
        rings.append(refine(state, rings[-1], nodes))
    for ring in reversed(rings[1:]):
        found = _pair_unique(graph, ring, nodes, accept)
        if found:
            return found
    origins = state.origins(nodes)
    found = _pair_unique(graph, origins, nodes, accept)
    return found or _pair_unique(graph, state.labels, one_sided(graph, origins), accept)


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
                if state.is_plausible(*pair):
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
    graph: PairGraph,
    keys: Sequence[Hashable] | Mapping[int, Hashable],
    nodes: Iterable[int],
    accept: _Test,
) -> int:
    found = 0
    for pair in unique_pairs(graph, keys, nodes):
        if accept(*pair):
            graph.pair(*pair)
            found += 1
    return found
