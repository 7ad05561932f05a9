"""The time that scheduling has come to, and the times at which nodes can run."""

from __future__ import annotations

from heapq import heappop, heappush

from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.scheduling.state.direction import Direction
from hloopt.scheduling.state.sharing import Sharing

NOT_READY = -1.0
"""The ready time of a node that waits for others."""


class Clock:
    """Times in the unit of the graph's costs, from where scheduling began."""

    __slots__ = (
        *("_cost", "_is_put_off", "_sharing"),
        *("becoming_ready", "earliest", "now", "ready_time"),
    )

    def __init__(
        self, graph: ScheduleGraph, direction: Direction, tracker: ResourceTracker
    ) -> None:
        self._cost = graph.cost
        self.now = 0.0
        self.ready_time = [NOT_READY] * len(graph.instructions)
        """The time at which each node can run without a stall; at which it runs, once scheduled."""
        self.earliest = [0.0] * len(graph.instructions)
        """The time at which what is behind each node and scheduled lets it run; to be raised with
        each edge."""
        self.becoming_ready: list[float] = []
        """A heap of the times at which ready nodes can run without a stall."""
        config = tracker.config
        self._is_put_off = config.resource_sharing or config.enable_selective_resources
        """Whether ready times may change after a node was reached; else all that is behind it ran
        before, and its ready time counts."""
        self._sharing = None
        if config.resource_sharing:
            self._sharing = Sharing(graph, direction, tracker, self.ready_time)

    def begin(self, node: int) -> None:
        """Note that nothing is behind a node."""
        self.ready_time[node] = 0.0

    def reach(self, node: int) -> None:
        """Note that all that is behind a node is scheduled."""
        self.ready_time[node] = self._earliest(node)

    def wait_for(self, node: int) -> None:
        """Count a node that was reached among those that are becoming ready, if it is not yet."""
        time = self.ready_time[node]
        if time > self.now:
            heappush(self.becoming_ready, time)

    def take(self, node: int) -> None:
        """Run a node. O(log nodes)."""
        time = self._earliest(node) if self._is_put_off else max(self.now, self.ready_time[node])
        self.ready_time[node] = time
        self.now = time + self._cost[node]
        if self._sharing is not None:
            self._sharing.take(node, time, self.now)
        becoming_ready = self.becoming_ready
        while becoming_ready and becoming_ready[0] < self.now:
            heappop(becoming_ready)

    def _earliest(self, node: int) -> float:
        """The time at which a node can run without a stall, by all that is behind it."""
        time = max(self.now, self.earliest[node])
        if self._sharing is not None:
            time = max(time, self._sharing.finish(node))
        return time
