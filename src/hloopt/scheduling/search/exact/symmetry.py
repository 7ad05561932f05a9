"""Nodes, and operations, that can change places in any order without changing what it is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hloopt.scheduling.search.exact.relations import Relations
from hloopt.scheduling.search.problem import NO_PAIR, Problem

Buffer = tuple[int, int | None, frozenset[int], bool]
"""Bytes, the node it begins at, those that use it, and whether it is alive at the end."""


def alike(relations: Relations, order: Sequence[int]) -> list[tuple[int, int]]:
    """Nodes that may be taken to come in this order, as any other order has an equal one in which
    they do: those of `order`.

    They are single nodes, or the starts of operations. None is in a group, has a hint, or belongs
    to claims that keep their order. O(nodes + edges + uses of buffers).
    """
    symmetry = _Symmetry.of(relations)
    groups: dict[object, list[int]] = {}
    for node in order:
        if symmetry.is_movable(node):
            groups.setdefault(symmetry.signature(node), []).append(node)
    return [
        (node, other)
        for group in groups.values()
        for node, other in pairwise(group)
        if symmetry.keeps_problem(node, other)
    ]


@dataclass(slots=True)
class _Symmetry:
    problem: Problem
    buffers: list[Buffer]
    of_node: list[list[int]]
    """By node the buffers that it begins or uses."""
    fixed: frozenset[int]

    @classmethod
    def of(cls, relations: Relations) -> _Symmetry:
        problem = relations.problem
        memory = problem.memory
        count = len(memory.size)
        users: list[set[int]] = [set() for _ in range(count)]
        begin: list[int | None] = [None] * count
        of_node: list[list[int]] = []
        for node, (uses, begins) in enumerate(zip(memory.uses, memory.begins, strict=True)):
            for buffer in uses:
                users[buffer].add(node)
            for buffer in begins:
                begin[buffer] = node
            of_node.append([*{*uses, *begins}])
        alive = {*memory.alive_at_end}
        buffers = [
            (memory.size[b], begin[b], frozenset(users[b]), b in alive) for b in range(count)
        ]
        groups = problem.follower
        fixed = {*groups, *groups.values(), *problem.not_later, *problem.not_earlier}
        if problem.claims_keep_order or not relations.claims_fit:
            fixed.update(n for n, claim in enumerate(problem.claims) if claim is not None)
        return cls(problem, buffers, of_node, frozenset(fixed))

    def is_movable(self, node: int) -> bool:
        return self.problem.pair_of_done[node] == NO_PAIR and not self.fixed & {*self._all_of(node)}

    def signature(self, node: int) -> object:
        """Equal for nodes that may be alike."""
        problem = self.problem
        pair = problem.pair_of_start[node]
        waiting = None if pair == NO_PAIR else (problem.latency[pair], problem.weight[pair])
        nodes = self._all_of(node)
        return (
            frozenset(problem.predecessors[node]),
            frozenset(problem.successors[nodes[-1]]),
            waiting,
            tuple((problem.cost[n], problem.claims[n], problem.memory.inside[n]) for n in nodes),
        )

    def keeps_problem(self, node: int, other: int) -> bool:
        """Whether the problem stays as it is if two nodes of one signature change names, each with
        its done."""
        nodes, others = self._all_of(node), self._all_of(other)
        name = {**dict(zip(nodes, others, strict=True)), **dict(zip(others, nodes, strict=True))}
        problem = self.problem
        return all(
            _renamed(edges[n], name) == {*edges[name[n]]}
            for n in name
            for edges in (problem.predecessors, problem.successors)
        ) and self._keeps_buffers(name)

    def _keeps_buffers(self, name: Mapping[int, int]) -> bool:
        touched = {buffer for node in name for buffer in self.of_node[node]}
        before = Counter(self.buffers[b] for b in touched)
        after = Counter(
            (size, begin if begin is None else name.get(begin, begin), _renamed(users, name), alive)
            for size, begin, users, alive in (self.buffers[b] for b in touched)
        )
        return before == after

    def _all_of(self, node: int) -> tuple[int, ...]:
        """A node, or a start and its done."""
        pair = self.problem.pair_of_start[node]
        return (node,) if pair == NO_PAIR else (node, self.problem.dones[pair])


def _renamed(nodes: Iterable[int], name: Mapping[int, int]) -> frozenset[int]:
    return frozenset(name.get(node, node) for node in nodes)
