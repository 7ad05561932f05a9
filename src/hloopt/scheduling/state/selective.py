"""Selective resources: only valuable work hides the latency of operations on them."""

from __future__ import annotations

from hloopt.scheduling.graph.graph import NO_HOPS, ScheduleGraph
from hloopt.scheduling.resources.resource import Hazard
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.scheduling.state.clock import Clock
from hloopt.scheduling.state.node_facts import releases_hazard
from hloopt.scheduling.state.ready_set import ReadySet


class SelectiveOverlap:
    """The operations on selective resources, and the work that is kept for them."""

    def __init__(
        self, graph: ScheduleGraph, tracker: ResourceTracker, clock: Clock, ready: ReadySet
    ) -> None:
        self._graph = graph
        self._hops = tracker.config.max_hops_to_closest_selective_overlap
        self._clock = clock
        self._ready = ready
        self._releases = releases_hazard(graph, tracker, Hazard.SELECTIVE)
        self.releasers: list[int] = []
        """Ready nodes that release a selective resource."""

    def should_be_kept(self, node: int) -> bool:
        """Whether a node is valuable and another ready one is near a selective resource."""
        hops = self._graph.hops_to_selective
        nearest = min(
            (hops[other] for other in self._ready.nodes if other != node), default=NO_HOPS
        )
        return self._graph.is_valuable[node] and nearest <= self._hops

    def reach(self, node: int) -> None:
        """Note that a node became ready."""
        if self._releases[node]:
            self.releasers.append(node)

    def take(self, node: int) -> None:
        """Delay what releases a selective resource where a node does not hide its latency."""
        if node in self.releasers:
            self.releasers.remove(node)
        if not self._graph.is_valuable[node]:
            for releaser in self.releasers:
                self._clock.ready_time[releaser] += self._graph.cost[node]
