"""Local pairs: nodes whose near neighbourhood is unique on their side."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from hloopt.analysis.matching.contexts import refine
from hloopt.analysis.matching.graph import PairGraph, Pairs
from hloopt.analysis.matching.state import MatchState, unique_pairs

_RADIUS = 2
_Test = Callable[[int, int], bool]


def pair_local(state: MatchState) -> int:
    """Pair nodes that read partners and have a unique near neighbourhood; returns how many.

    Tries the neighbourhood of radius two, of radius one, the node with its op_name, and the node
    alone if the other side lacks its op_name. Users do not suffice: they may be those of the step
    before or after in a chain.
    """
    return _pair_local(state, state.reads_partners)


def pair_local_by_use(state: MatchState) -> int:
    """As `pair_local`, for nodes that partners read."""
    return _pair_local(state, state.is_read_by_partners)


def pair_remote(state: MatchState) -> int:
    """As `pair_local`, for nodes that edges to partners do not contradict."""
    return _pair_local(state, state.is_plausible)


def pair_displaced(state: MatchState) -> int:
    """Pair nodes whose neighbours' labels are unique, even if these neighbours have other partners.

    Example: the loss after a last layer was added; its neighbours are other instructions now, with
    the same labels.
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
