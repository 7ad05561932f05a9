"""The nodes that a solver has to place, and which of them precede which in every order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hloopt.scheduling.search.problem import NO_PAIR, Problem


@dataclass(slots=True)
class Relations:
    """The consequences of dependencies, groups and rules on who may overlap for all orders."""

    problem: Problem
    placed: list[int]
    """The nodes whose places matter, in an order that is allowed. Others take no time, claim
    nothing and are in nobody's way, so that they can be put in afterwards."""
    has_memory: bool
    """Whether some order may exceed the memory limit."""
    claims_fit: bool
    """Whether the plain order keeps the limits of all resources. A computation's share of them may
    be less; then claims stay in order, or all of them have to fit."""
    before: list[int]
    """By node all that precede it, as bits."""

    @classmethod
    def of(cls, problem: Problem) -> Relations:
        """O(nodes · edges / 64 + uses of buffers)."""
        has_memory = _may_exceed_memory(problem)
        is_pinned = bool(problem.follower or problem.not_later or problem.not_earlier)
        placed = [
            node
            for node in problem.nodes
            if has_memory or is_pinned or is_timed(problem, node) or problem.claims[node]
        ]
        return cls(problem, placed, has_memory, _claims_fit(problem), _closure(problem))

    def precedes(self, node: int, other: int) -> bool:
        """Whether a node comes before another in every order. O(1)."""
        return bool(self.before[other] >> node & 1)

    def last_of(self, nodes: Sequence[int]) -> list[int]:
        """The nodes that precede none of the others. O(nodes²)."""
        return [n for n in nodes if not any(self.precedes(n, other) for other in nodes)]

    def completed(self, placed: Sequence[int]) -> list[int]:
        """An order of all nodes, from one of those that are placed. O(nodes²)."""
        order: dict[int, None] = {}
        for node in placed:
            for other in self.problem.nodes:
                if self.precedes(other, node):
                    order[other] = None
            order[node] = None
        order.update(dict.fromkeys(self.problem.nodes))
        return list(order)


def is_timed(problem: Problem, node: int) -> bool:
    """Whether a node takes time, or starts or ends an operation."""
    return bool(
        problem.cost[node]
        or problem.pair_of_start[node] != NO_PAIR
        or problem.pair_of_done[node] != NO_PAIR
    )


def claimants_of(problem: Problem) -> list[int]:
    """The nodes that resources matter to, in the plain order."""
    return [node for node in problem.nodes if problem.claims[node] is not None]


def _may_exceed_memory(problem: Problem) -> bool:
    """Whether all buffers at once would exceed the limit."""
    memory = problem.memory
    alive = {*memory.alive_at_end}
    own = {buffer for uses in memory.uses for buffer in uses} - alive
    return sum(memory.size[b] for b in own) + max(memory.inside, default=0) > memory.limit


def _claims_fit(problem: Problem) -> bool:
    """Whether the plain order keeps the limits of all resources."""
    left = list(problem.left)
    for node in reversed(problem.nodes) if problem.bottom_up else problem.nodes:
        needs, changes = problem.claims[node] or ((), ())
        if any(needed > left[resource] for resource, needed in needs):
            return False
        for resource, change in changes:
            left[resource] += change
    return True


def _closure(problem: Problem) -> list[int]:
    edges: list[list[int]] = [list(earlier) for earlier in problem.predecessors]
    for node, follower in problem.follower.items():
        edges[follower].append(node)
    if problem.claims_keep_order:
        for node, claimant in pairwise(claimants_of(problem)):
            edges[claimant].append(node)
    before = [0] * len(edges)
    for node in problem.nodes:
        for earlier in edges[node]:
            before[node] |= before[earlier] | 1 << earlier
    return before
