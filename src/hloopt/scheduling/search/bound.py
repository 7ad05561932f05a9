"""The work that can hide an operation, and the least that any order of a computation waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hloopt.scheduling.search.problem import Problem


class FreeWork:
    """By pair, the nodes that take time and can run while the operation is under way."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._found: dict[int, list[int]] = {}

    def __getitem__(self, pair: int) -> list[int]:
        """Neither do they lead to the start nor do they need the done. O(edges), once."""
        found = self._found.get(pair)
        if found is None:
            problem = self._problem
            bound = _reached(problem.starts[pair], problem.predecessors)
            bound |= _reached(problem.dones[pair], problem.successors)
            found = [node for node, cost in enumerate(problem.cost) if cost and node not in bound]
            self._found[pair] = found
        return found


def least_waiting(problem: Problem, wait: Sequence[int], free_work: FreeWork) -> int:
    """Ticks that no order can avoid; `wait`: by pair those of some order.

    O(edges) per pair that waits, and O(edges · pairs / 64).
    """
    if not any(wait):
        return 0
    return max(_lacking(problem, wait, free_work), _one_after_another(problem))


def _lacking(problem: Problem, wait: Sequence[int], free_work: FreeWork) -> int:
    """The ticks that operations take beyond what can hide them.

    Only free work hides an operation, and its done itself. Where one operation at a time may use a
    resource no work hides two of them, so what they lack adds up.
    """
    alone: dict[int, int] = {}
    most = 0
    for pair, ticks in enumerate(wait):
        if not ticks:
            continue
        hidden = problem.cost[problem.dones[pair]]
        hidden += sum(problem.cost[node] for node in free_work[pair])
        lack = problem.latency[pair] - hidden
        if lack <= 0:
            continue
        most = max(most, lack)
        for resource in _alone_on(problem, pair):
            alone[resource] = alone.get(resource, 0) + lack
    return max(most, *alone.values(), 0)


def _one_after_another(problem: Problem) -> int:
    """The ticks that the operations on one resource, of which it carries one at a time, take beyond
    all work that can run beside any of them.

    That is work which does not lead to the starts, or need the dones, of all of them; each done is
    part of its own operation, each start of none.
    """
    on: dict[int, list[int]] = {}
    for pair in range(len(problem.dones)):
        for resource in _alone_on(problem, pair):
            on.setdefault(resource, []).append(pair)
    most = 0
    for pairs in on.values():
        starts = {problem.starts[pair]: 1 << i for i, pair in enumerate(pairs)}
        dones = {problem.dones[pair]: 1 << i for i, pair in enumerate(pairs)}
        leads = _masks(reversed(problem.nodes), problem.successors, starts)
        needs = _masks(problem.nodes, problem.predecessors, dones)
        every = (1 << len(pairs)) - 1
        beside = sum(
            cost
            for node, cost in enumerate(problem.cost)
            if node in dones or (node not in starts and leads[node] | needs[node] != every)
        )
        most = max(most, sum(problem.latency[pair] for pair in pairs) - beside)
    return most


def _alone_on(problem: Problem, pair: int) -> list[int]:
    """The resources that an operation needs and that carry one at a time."""
    claim = problem.claims[problem.dones[pair]]
    return [r for r, _ in claim[0] if problem.left[r] == 1] if claim is not None else []


def _masks(
    order: Iterable[int], edges: Sequence[Sequence[int]], own: Mapping[int, int]
) -> list[int]:
    """Bits by node: its own, and those of all that its edges reach, which `order` has before it."""
    masks = [0] * len(edges)
    for node in order:
        mask = own.get(node, 0)
        for other in edges[node]:
            mask |= masks[other]
        masks[node] = mask
    return masks


def _reached(node: int, edges: Sequence[Sequence[int]]) -> set[int]:
    found = {node}
    stack = [node]
    while stack:
        for other in edges[stack.pop()]:
            if other not in found:
                found.add(other)
                stack.append(other)
    return found
