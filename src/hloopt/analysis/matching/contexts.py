"""Contexts of unmatched nodes, as numbers: all they depend on, and all that depends on them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hloopt.analysis.matching.graph import PairGraph
from hloopt.analysis.matching.state import MatchState


class Contexts:
    """Numbers of contexts, equal for equal contexts; a matched pair ends a context as one leaf.

    `leaves` numbers a node by its label and transitive operands, `roots` by its label and
    transitive users with operand positions, `both` by both. Lists are indexed by node.
    O(unmatched nodes + their edges).
    """

    __slots__ = ("both", "leaves", "roots")

    def __init__(self, state: MatchState, nodes: Sequence[int]) -> None:
        graph = state.graph
        self.leaves = list(graph.tokens)
        self.roots = list(graph.tokens)
        self.both = list(graph.tokens)
        self._number_leaves(graph, state.labels, nodes)
        self._number_roots(graph, state, nodes)
        numbers: dict[tuple[int, int], int] = {}
        for node in nodes:
            key = self.leaves[node], self.roots[node]
            self.both[node] = numbers.setdefault(key, len(numbers))

    def _number_leaves(self, graph: PairGraph, labels: Sequence[int], nodes: Sequence[int]) -> None:
        numbers: dict[Hashable, int] = {}
        leaves, operands = self.leaves, graph.operands
        for node in nodes:
            key = (labels[node], *[leaves[operand] for operand in operands[node]])
            leaves[node] = numbers.setdefault(key, len(numbers))

    def _number_roots(self, graph: PairGraph, state: MatchState, nodes: Sequence[int]) -> None:
        numbers: dict[Hashable, int] = {}
        roots, users, uses = self.roots, state.users, state.uses
        for node in reversed(nodes):
            reads = [(roots[user], place) for user, place in users[node]]
            if len(reads) > 1:
                reads.sort()
            key = (uses[node], node in graph.roots, *reads)
            roots[node] = numbers.setdefault(key, len(numbers))


def refine(state: MatchState, keys: Sequence[int], nodes: Sequence[int]) -> list[int]:
    """One round of color refinement: keys that include those of neighbours. O(edges of `nodes`)."""
    operands, users = state.graph.operands, state.users
    numbers: dict[Hashable, int] = {}
    refined = list(keys)
    for node in nodes:
        reads = tuple([keys[operand] for operand in operands[node]])
        read_by = tuple(sorted([(keys[user], place) for user, place in users[node]]))
        refined[node] = numbers.setdefault((keys[node], reads, read_by), len(numbers))
    return refined
