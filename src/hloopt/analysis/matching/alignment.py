"""Alignment: pair nodes in topological order, between pairs that both sides have in one order."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence

from hloopt.analysis.matching.graph import PairGraph
from hloopt.analysis.matching.local import one_sided
from hloopt.analysis.matching.sequences import ascending, common_subsequence
from hloopt.analysis.matching.state import MatchState


def align(state: MatchState) -> int:
    """Pair unmatched nodes by a common subsequence between matched ones; returns how many.

    Keys are label and op_name, or label alone if that finds nothing; a pair that edges contradict
    is not made. The order is that of a walk from the roots. O(n log n).
    """
    graph = state.graph
    nodes = graph.unmatched()
    origins = state.origins(nodes)
    found = _align(state, origins, nodes)
    return found or _align(state, state.labels, one_sided(graph, origins))


def _align(
    state: MatchState, keys: Sequence[Hashable] | Mapping[int, Hashable], nodes: Iterable[int]
) -> int:
    graph = state.graph
    proposals: dict[int, int] = {}
    for old, new in _gaps(graph, set(nodes)):
        common = common_subsequence([keys[node] for node in old], [keys[node] for node in new])
        for a, b in common:
            proposals[old[a]] = new[b]
            proposals[new[b]] = old[a]
    found = 0
    for a, b in proposals.items():
        if a < graph.split and state.is_plausible(a, b, proposals):
            graph.pair(a, b)
            found += 1
    return found


def _gaps(graph: PairGraph, nodes: Container[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Split both walks at pairs that are in order on both sides; yields the `nodes` between."""
    old_walk, new_walk = graph.walks()
    partner = graph.partner
    old_place = {node: place for place, node in enumerate(old_walk)}
    new_place = {node: place for place, node in enumerate(new_walk)}
    matched = [node for node in old_walk if partner[node] >= 0]
    fixed = ascending([new_place[partner[node]] for node in matched])
    ends = [(old_place[matched[i]], new_place[partner[matched[i]]]) for i in fixed]
    old_start = new_start = 0
    for old_end, new_end in (*ends, (len(old_walk), len(new_walk))):
        old = [node for node in old_walk[old_start:old_end] if node in nodes]
        if old:
            new = [node for node in new_walk[new_start:new_end] if node in nodes]
            if new:
                yield old, new
        old_start, new_start = old_end + 1, new_end + 1
