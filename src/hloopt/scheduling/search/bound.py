"""The work that can hide an operation, and the least that any order of a computation waits."""

from __future__ import annotations

from collections.abc import Sequence

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

    Only free work hides an operation, and its done itself. Where one operation at a time may use a
    resource no work hides two of them, so what they lack adds up. O(edges) per pair that waits.
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
        claim = problem.claims[problem.dones[pair]]
        for resource, _ in claim[0] if claim is not None else ():
            if problem.left[resource] == 1:
                alone[resource] = alone.get(resource, 0) + lack
    return max(most, *alone.values(), 0)


def _reached(node: int, edges: Sequence[Sequence[int]]) -> set[int]:
    found = {node}
    stack = [node]
    while stack:
        for other in edges[stack.pop()]:
            if other not in found:
                found.add(other)
                stack.append(other)
    return found
