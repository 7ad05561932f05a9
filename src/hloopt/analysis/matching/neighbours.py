"""Pairs that follow from those of their neighbours, the most certain first."""

from __future__ import annotations

from heapq import heappop, heappush

from hloopt.analysis.matching.evidence import Evidence
from hloopt.analysis.matching.graph import Pairs
from hloopt.analysis.matching.state import MatchState

_LEAST_SHARE = 0.4
_MOST_COMBINATIONS = 36
"""Candidates among the users of one pair at one position; more tell nothing."""


def spread(state: MatchState) -> int:
    """Pair what most edges to partners speak for; returns how many pairs.

    An edge speaks for a pair of one label where its other ends are partners and the positions are
    equal. The pair with the largest share of such edges is made first, then evidence decides; it
    brings new candidates. O(e log e) in the edges next to unmatched nodes.
    """
    graph = state.graph
    old, _ = graph.sides(graph.unmatched())
    anchors: dict[int, None] = {}
    for node in old:
        anchors.update(dict.fromkeys(graph.operands[node]))
        anchors.update((user, None) for user, _ in graph.users[node])
    candidates = _Candidates(state)
    for anchor in anchors:
        if graph.partner[anchor] >= 0:
            candidates.add_around(anchor, graph.partner[anchor])
    found = 0
    while (pair := candidates.pop()) is not None:
        graph.pair(*pair)
        candidates.add_around(*pair)
        found += 1
    return found


class _Candidates:
    """Pairs of unmatched nodes with the number of edges that speak for each."""

    def __init__(self, state: MatchState) -> None:
        self._state = state
        self._votes: dict[tuple[int, int], int] = {}
        self._heap: list[tuple[tuple[float, int, Evidence], int, int, int]] = []

    def pop(self) -> tuple[int, int] | None:
        """The candidate that most speaks for, if that is enough."""
        partner = self._state.graph.partner
        while self._heap:
            _, old, new, votes = heappop(self._heap)
            if partner[old] < 0 and partner[new] < 0 and self._votes[old, new] == votes:
                return old, new
        return None

    def add_around(self, old: int, new: int) -> None:
        """Count the edges between a pair and its unmatched neighbours."""
        graph, labels = self._state.graph, self._state.labels
        partner = graph.partner
        for a, b in zip(graph.operands[old], graph.operands[new], strict=False):
            if partner[a] < 0 and partner[b] < 0 and labels[a] == labels[b]:
                self._vote(a, b)
        users: dict[tuple[int, int], Pairs] = {}
        for side, node in enumerate((old, new)):
            for user, position in graph.users[node]:
                if partner[user] < 0:
                    users.setdefault((labels[user], position), ([], []))[side].append(user)
        for olds, news in users.values():
            if len(olds) * len(news) <= _MOST_COMBINATIONS:
                for a in olds:
                    for b in news:
                        self._vote(a, b)

    def _vote(self, old: int, new: int) -> None:
        graph = self._state.graph
        votes = self._votes[old, new] = self._votes.get((old, new), 0) + 1
        degrees = graph.degree(old), graph.degree(new)
        share = votes / max(degrees)
        if share >= _LEAST_SHARE:
            a, b, c, d = self._state.witness.of(old, new)
            rank = -share, max(degrees) - min(degrees), (-a, -b, -c, -d)
            heappush(self._heap, (rank, old, new, votes))
