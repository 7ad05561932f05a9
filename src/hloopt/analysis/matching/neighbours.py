"""Propagation of pairs to neighbours, the most certain first."""

from __future__ import annotations

from heapq import heappop, heappush

from hloopt.analysis.matching.evidence import Evidence
from hloopt.analysis.matching.graph import Pairs
from hloopt.analysis.matching.state import MatchState

_LEAST_SHARE = 0.4
_MOST_COMBINATIONS = 36
"""Most candidate pairs among users of one pair at one position; more are no evidence."""


def spread(state: MatchState) -> int:
    """Pair nodes by the votes of edges to partners; returns how many pairs.

    An edge votes for a pair of one label if its other ends are partners and the positions equal.
    The pair with the largest share of votes is made first, and none with a rival: another pair of
    either node that ranks as high. Each pair brings new candidates. O(e log e) in the edges next
    to unmatched nodes.
    """
    return _spread(state, choose=False)


def spread_choosing(state: MatchState) -> int:
    """As `spread`; between rivals names decide, or order."""
    return _spread(state, choose=True)


def _spread(state: MatchState, *, choose: bool) -> int:
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
    while (pair := candidates.pop(choose=choose)) is not None:
        graph.pair(*pair)
        candidates.settle(*pair)
        found += 1
    return found


_Entry = tuple[tuple[float, int, Evidence], int, int, int]
"""Rank, both nodes, and the number of votes when it was pushed."""


class _Candidates:
    """Pairs of unmatched nodes, with votes, in heaps by rank."""

    def __init__(self, state: MatchState) -> None:
        self._state = state
        self._votes: dict[tuple[int, int], int] = {}
        self._others: dict[int, dict[int, None]] = {}
        self._clear: list[_Entry] = []
        self._unclear: list[_Entry] = []

    def pop(self, *, choose: bool) -> tuple[int, int] | None:
        """The best candidate without rivals; if there is none and `choose`, the best of all."""
        while (entry := self._next(self._clear)) is not None:
            if not self._has_rivals(entry):
                return entry[1:3]
            heappush(self._unclear, entry)
        entry = self._next(self._unclear) if choose else None
        return None if entry is None else entry[1:3]

    def settle(self, old: int, new: int) -> None:
        """Note a new pair: add its votes, and push again candidates that lost a rival."""
        rivals = [
            (node, other)
            for each in (old, new)
            for node in self._others.pop(each, ())
            for other in self._others.get(node, ())
        ]
        for node, other in rivals:
            self._push(*((node, other) if node < other else (other, node)))
        self.add_around(old, new)

    def add_around(self, old: int, new: int) -> None:
        """Add the votes of the edges between a pair and its unmatched neighbours."""
        labels, partner = self._state.labels, self._state.graph.partner
        for a, b in self._state.operand_pairs(old, new):
            if partner[a] < 0 and partner[b] < 0 and labels[a] == labels[b]:
                self._vote(a, b)
        users: dict[tuple[int, int], Pairs] = {}
        for side, node in enumerate((old, new)):
            for user, place in self._state.users[node]:
                if partner[user] < 0:
                    users.setdefault((labels[user], place), ([], []))[side].append(user)
        for olds, news in users.values():
            if len(olds) * len(news) <= _MOST_COMBINATIONS:
                for a in olds:
                    for b in news:
                        self._vote(a, b)

    def _vote(self, old: int, new: int) -> None:
        self._votes[old, new] = self._votes.get((old, new), 0) + 1
        self._others.setdefault(old, {})[new] = None
        self._others.setdefault(new, {})[old] = None
        self._push(old, new)

    def _push(self, old: int, new: int) -> None:
        partner = self._state.graph.partner
        share, difference = self._rank(old, new)
        if share >= _LEAST_SHARE and partner[old] < 0 and partner[new] < 0:
            a, b, c, d = self._state.witness.of(old, new)
            rank = -share, difference, (-a, -b, -c, -d)
            heappush(self._clear, (rank, old, new, self._votes[old, new]))

    def _rank(self, old: int, new: int) -> tuple[float, int]:
        degrees = self._state.graph.degree(old), self._state.graph.degree(new)
        return self._votes[old, new] / max(degrees), max(degrees) - min(degrees)

    def _next(self, heap: list[_Entry]) -> _Entry | None:
        """Pop the best entry that is not stale; None if there is none."""
        partner = self._state.graph.partner
        while heap:
            entry = heappop(heap)
            _, old, new, votes = entry
            if partner[old] < 0 and partner[new] < 0 and self._votes[old, new] == votes:
                return entry
        return None

    def _has_rivals(self, entry: _Entry) -> bool:
        """Whether another pair with one of both nodes ranks as high, names aside."""
        (share, difference, evidence), old, new, _ = entry
        partner = self._state.graph.partner
        for node, rival in ((old, new), (new, old)):
            for other in self._others[node]:
                if other != rival and partner[other] < 0:
                    pair = (node, other) if node < other else (other, node)
                    rank = self._rank(*pair)
                    same = rank[0] > -share or rank == (-share, difference)
                    if same and self._state.witness.of(*pair)[:2] >= (-evidence[0], -evidence[1]):
                        return True
        return False
