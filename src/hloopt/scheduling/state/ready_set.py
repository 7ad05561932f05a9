"""The nodes that are ready to be scheduled, and those that wait for others."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.state.direction import Direction


class ReadySet:
    """Each node waits for what is behind it, then is ready, then is scheduled."""

    def __init__(self, graph: ScheduleGraph, direction: Direction) -> None:
        self._graph = graph
        self._behind = direction.behind
        count = len(graph.instructions)
        waiting = self.waiting = [len(edges) for edges in direction.behind]
        """The number of edges from behind that are still open, per node."""
        self.creates_ready = [
            len([node for node in ahead if waiting[node] == 1]) for ahead in direction.ahead
        ]
        """The number of nodes that wait for each node alone."""
        self.nodes: list[int] = []
        """The ready nodes that rules choose from."""
        self.place = [-1] * count
        """The place among the ready nodes; -1 if it is not."""
        self.no_work: list[int] = []
        """The ready nodes that take no time: rules have no say."""
        self.is_taken = [False] * count
        self.on_change: Callable[[int], None] | None = None
        """Called with each ready node of which something changed that rules read."""
        self.on_removed: Callable[[int], None] | None = None
        """Called with each node that is not ready any more."""

    def enqueue(self, node: int) -> bool:
        """Make a node ready; whether it is to be chosen by the rules."""
        if self._graph.takes_no_choice(node):
            self.no_work.append(node)
            return False
        self.place[node] = len(self.nodes)
        self.nodes.append(node)
        if self.on_change is not None:
            self.on_change(node)
        return True

    def note_change(self, node: int) -> None:
        """Note that something changed that rules read of a node, which may be ready."""
        if self.place[node] >= 0 and self.on_change is not None:
            self.on_change(node)

    def note_last_wait(self, node: int) -> None:
        """Note that one edge of a node is left: what it comes from will make it ready."""
        for behind in self._behind[node]:
            if not self.is_taken[behind]:
                self.creates_ready[behind] += 1
                self.note_change(behind)
                return

    def take(self, node: int) -> None:
        """Take a node out; the last ready one comes in its place."""
        self.is_taken[node] = True
        place = self.place[node]
        if place < 0:
            return
        last = self.nodes.pop()
        if last != node:
            self.nodes[place] = last
            self.place[last] = place
        self.place[node] = -1
        if self.on_removed is not None:
            self.on_removed(node)
