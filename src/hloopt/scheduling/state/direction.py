"""The edges of a schedule graph, seen from the end of the program where scheduling begins."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.scheduling.graph.graph import ScheduleGraph


@dataclass(frozen=True, slots=True)
class Direction:
    """Edges by node. "Behind" a node is what is scheduled before it, "ahead" what waits for it:
    bottom up these are what comes after and before it in the program."""

    ahead: list[list[int]]
    ahead_latency: list[list[float]]
    behind: list[list[int]]
    behind_latency: list[list[float]]
    async_depth: list[float]
    """The latencies of asynchronous operations on the longest path that is still ahead."""

    @classmethod
    def of(cls, graph: ScheduleGraph, *, top_down: bool) -> Direction:
        up = (graph.predecessors, graph.predecessor_latency)
        down = (graph.successors, graph.successor_latency)
        if top_down:
            return cls(*down, *up, graph.async_height)
        return cls(*up, *down, graph.async_depth)
