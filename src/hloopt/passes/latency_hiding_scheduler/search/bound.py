"""How long any order of a computation waits at least."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.passes.latency_hiding_scheduler.search.problem import Problem


def least_waiting(problem: Problem, wait: Sequence[int]) -> int:
    """Ticks that no order can avoid; `wait`: by pair those of some order.

    Between start and done only work can run that neither leads to the start nor needs the done.
    Where one operation at a time may use a resource no work hides two of them, so what they lack
    adds up. O(edges) per pair that waits.
    """
    alone: dict[int, int] = {}
    most = 0
    for pair, ticks in enumerate(wait):
        if not ticks:
            continue
        lack = problem.latency[pair] - _hidden_at_most(problem, pair)
        if lack <= 0:
            continue
        most = max(most, lack)
        claim = problem.claims[problem.dones[pair]]
        for resource, _ in claim[0] if claim is not None else ():
            if problem.left[resource] == 1:
                alone[resource] = alone.get(resource, 0) + lack
    return max(most, *alone.values(), 0)


def _hidden_at_most(problem: Problem, pair: int) -> int:
    """The ticks of all work that can run while an operation is under way, its done's included."""
    start, done = problem.starts[pair], problem.dones[pair]
    outside = _reached(start, problem.predecessors) | _reached(done, problem.successors)
    outside.remove(done)
    return sum(problem.cost) - sum(problem.cost[node] for node in outside)


def _reached(node: int, edges: Sequence[Sequence[int]]) -> set[int]:
    found = {node}
    stack = [node]
    while stack:
        for other in edges[stack.pop()]:
            if other not in found:
                found.add(other)
                stack.append(other)
    return found
