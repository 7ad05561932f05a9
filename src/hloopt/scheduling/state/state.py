"""The state of scheduling one computation."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.memory.pressure import BufferLife
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.scheduling.state.clock import Clock
from hloopt.scheduling.state.direction import Direction
from hloopt.scheduling.state.memory_use import MemoryUse
from hloopt.scheduling.state.node_facts import NodeFacts
from hloopt.scheduling.state.ready_set import ReadySet
from hloopt.scheduling.state.resource_use import ResourceUse
from hloopt.scheduling.state.selective import SelectiveOverlap


class SchedulingState:
    """The order so far, and all that changes with each node that is put next to it.

    Nodes are numbers of the graph.
    """

    def __init__(
        self,
        graph: ScheduleGraph,
        config: SchedulerConfig,
        tracker: ResourceTracker,
        life: BufferLife,
        memory_limit: int,
    ) -> None:
        self.graph = graph
        self.config = config
        self.tracker = tracker
        self.top_down = config.top_down_scheduling
        self.sequence: list[int] = []
        """The nodes that are scheduled, in the order of that."""
        self.on_chosen: list[Callable[[int], None]] = []
        """Called with each node when it was chosen, before anything changes."""
        self.on_taken: Callable[[int], None] | None = None
        """Called with each node that was scheduled."""
        self.direction = Direction.of(graph, top_down=self.top_down)
        self.facts = NodeFacts.of(graph, tracker)
        self.clock = Clock(graph, self.direction, tracker)
        self.resources = ResourceUse(graph, tracker)
        self.ready = ReadySet(graph, self.direction)
        limit = memory_limit if config.minds_memory else None
        self.memory = MemoryUse(graph, life, limit, self.ready.note_change, top_down=self.top_down)
        self.selective: SelectiveOverlap | None = None
        if config.enable_selective_resources:
            self.selective = SelectiveOverlap(graph, tracker, self.clock, self.ready)

    def obstacle(self, node: int) -> str:
        """The reason why a ready node may not be chosen, in XLA's word; empty if it may."""
        if node in self.graph.group:
            return "kAnnotationNotReady"
        resources = self.resources
        fits = not resources.needs[node] or resources.fits(node)
        return "" if fits else "kExceedsOverlapLimit"

    def begin(self) -> None:
        """Make what nothing is behind ready."""
        for node, count in enumerate(self.ready.waiting):
            if not count:
                self.clock.begin(node)
                self.ready.enqueue(node)

    def take(self, node: int) -> None:
        """Put a node next. O(edges + buffers + log nodes)."""
        for listener in self.on_chosen:
            listener(node)
        self.ready.take(node)
        self.sequence.append(node)
        if self.selective is not None:
            self.selective.take(node)
        if self.resources.net[node]:
            self.resources.take(node)
        self.clock.take(node)
        self._open_edges(node)
        if self.graph.uses[node]:
            self.resources.note_in_flight(node)
        self.memory.take(node)
        if self.on_taken is not None:
            self.on_taken(node)

    def _open_edges(self, node: int) -> None:
        """Let what waits for a node wait for one less."""
        waiting, earliest = self.ready.waiting, self.clock.earliest
        begun = self.clock.ready_time[node]
        latencies = self.direction.ahead_latency[node]
        for edge, ahead in enumerate(self.direction.ahead[node]):  # a strict zip takes longer
            time = begun + latencies[edge]
            if time > earliest[ahead]:
                earliest[ahead] = time
            count = waiting[ahead] = waiting[ahead] - 1
            if count == 1:
                self.ready.note_last_wait(ahead)
            elif not count:
                self._make_ready(ahead)

    def _make_ready(self, node: int) -> None:
        self.clock.reach(node)
        if self.graph.occupies[node]:
            self.resources.reach(node)
        if self.ready.enqueue(node):
            self.clock.wait_for(node)
            if self.selective is not None:
                self.selective.reach(node)
