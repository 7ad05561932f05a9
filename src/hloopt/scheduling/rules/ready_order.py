"""The choice of the ready node that is scheduled next: a chain of rules, the first that decides
counts.

Candidates are narrowed by one rule after the other; from a rule on that orders them by no key they
are compared in pairs, the best so far with the next, as XLA compares all.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile

from hloopt.scheduling.rules.chain import chain_of
from hloopt.scheduling.rules.ready_index import ReadyIndex
from hloopt.scheduling.rules.rule import Nodes, TargetRules
from hloopt.scheduling.state.state import SchedulingState

_LAST = ("kAsyncDepth", "kUnlockDone")
"""The first of the rules that order peers; without aggressive policies the second is the first."""


class ReadyOrder:
    """The rules that apply to a computation, in order, and the choice by them."""

    def __init__(self, state: SchedulingState, target_rules: TargetRules | None = None) -> None:
        self.state = state
        target_rules = target_rules or TargetRules()
        chain = chain_of(state.config, target_rules)
        self.rules = [rule for rule in chain if rule.applies(state)]
        self._steps = [(rule.narrow, rule.is_pairwise) for rule in self.rules]
        self._first = sum(1 for _ in takewhile(lambda r: r.reason not in _LAST, self.rules))
        """The number of rules that are before those that the index arranges peers by."""
        self.decisions: Counter[str] = Counter()
        """The number of choices that each rule decided: after it one candidate was left, or of
        candidates compared in pairs the last lost. A choice among peers alone, which the index
        makes, is none."""
        self._index: ReadyIndex | None = None
        config = state.config
        if not (config.enable_selective_resources or config.resource_sharing or target_rules.late):
            self._index = ReadyIndex(state, self.rules[: self._first])
            state.ready.on_change = self._index.touch
            state.ready.on_removed = self._index.remove

    def choose(self) -> int | None:
        """The best of the ready nodes that may be scheduled; None if there is none."""
        nodes = self.leaders()
        if len(nodes) < 2:
            return nodes[0] if nodes else None
        self.state.memory.look()
        return self._choose(nodes)

    def leaders(self) -> Nodes:
        """Ready nodes that may be scheduled, among them the best. O(groups of equal nodes)."""
        return self.candidates() if self._index is None else self._index.leaders()

    def blocked(self) -> Nodes:
        """Ready nodes that want a resource of which too little is left, one of each kind."""
        if self._index is not None:
            return self._index.blocked()
        group = self.state.graph.group
        return [n for n in self.state.ready.nodes if n not in group and self.state.obstacle(n)]

    def candidates(self) -> Nodes:
        """The ready nodes that may be scheduled, in the order of the ready list. O(ready)."""
        return [node for node in self.state.ready.nodes if not self.state.obstacle(node)]

    def _choose(self, nodes: Nodes) -> int:
        state = self.state
        for position, (narrow, is_pairwise) in enumerate(self._steps):
            if is_pairwise is not None and is_pairwise(state, nodes):
                return self._best_in_pairs(self._with_peers(nodes, position), position)
            nodes = narrow(state, nodes)
            if len(nodes) == 1:
                self.decisions[self.rules[position].reason] += 1
                break
        return nodes[0]

    def _with_peers(self, nodes: Nodes, position: int) -> Nodes:
        """All that the rules up to a position see as equal to the leaders in `nodes`."""
        if self._index is not None:
            nodes = self._index.all_peers(nodes)
            for rule in self.rules[self._first : position]:
                nodes = rule.narrow(self.state, nodes)
        return nodes

    def _best_in_pairs(self, nodes: Nodes, position: int) -> int:
        best, decisive = nodes[0], self.rules[position].reason
        for node in nodes[1:]:
            best, decisive = self.compare(best, node, position)
        self.decisions[decisive] += 1
        return best

    def compare(self, best: int, node: int, position: int = 0) -> tuple[int, str]:
        """The better of two nodes and the rule that decides, beginning with one of the rules."""
        for rule in self.rules[position:]:
            better = rule.narrow(self.state, [best, node])
            if len(better) == 1:
                return better[0], rule.reason
        return best, ""
