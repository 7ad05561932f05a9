"""Operations that share a resource: while several are open, each is slower."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.scheduling.state.direction import Direction

Operation = TypeVar("Operation", bound=Hashable)


@dataclass(slots=True)
class SharedResource(Generic[Operation]):
    """Operations on one resource, by the time each will be finished.

    With n of them open each makes 1/n of the progress it would make alone.
    """

    operations: list[Operation] = field(default_factory=list)
    finish: list[float] = field(default_factory=list)
    """The finish time of each, ascending."""

    def add(self, operation: Operation, latency: float, now: float) -> None:
        """Begin an operation that would take `latency` alone. O(operations)."""
        rest, time, delay = latency, now, 0.0
        open_before = len(self.finish)
        position = 0
        while position < len(self.finish) and self.finish[position] - time <= rest * open_before:
            if self.finish[position] > now:
                progress = (self.finish[position] - time) / open_before
                time = self.finish[position]
                rest -= progress
                delay += progress
                self.finish[position] += delay
            open_before -= 1
            position += 1
        for later in range(position, len(self.finish)):
            self.finish[later] += delay + rest
        self.operations.insert(position, operation)
        self.finish.insert(position, time + delay + rest * (open_before + 1))

    def delete(self, operation: Operation, now: float) -> bool:
        """End an operation; whether it was known. O(operations)."""
        if operation not in self.operations:
            return False
        position = self.operations.index(operation)
        saved, time = 0.0, now
        open_before = len(self.finish)
        for earlier in range(position):
            if self.finish[earlier] > now:
                progress = (self.finish[earlier] - time) / open_before
                time = self.finish[earlier]
                saved += progress
                self.finish[earlier] -= saved
            open_before -= 1
        if self.finish[position] > now:
            saved += (self.finish[position] - time) / open_before
        del self.operations[position], self.finish[position]
        for later in range(position, len(self.finish)):
            self.finish[later] -= saved
        return True

    def finish_of(self, operation: Operation) -> float | None:
        """The finish time of an operation; None if it is not known."""
        if operation not in self.operations:
            return None
        return self.finish[self.operations.index(operation)]


class Sharing:
    """The shared resources of a computation while it is scheduled."""

    def __init__(
        self,
        graph: ScheduleGraph,
        direction: Direction,
        tracker: ResourceTracker,
        ready_time: list[float],
    ) -> None:
        """`ready_time`: by node, to be raised where others slow down what it waits for."""
        self._graph = graph
        self._direction = direction
        self._tracker = tracker
        self._ready_time = ready_time
        self._resources: dict[int, SharedResource[tuple[int, int]]] = {}
        self._held: dict[int, list[tuple[int, tuple[int, int]]]] = {}
        """By the node that will give back what it holds: resources, each with the operation."""

    def finish(self, node: int) -> float:
        """The finish time of the last operation whose resources a node releases."""
        times = [self._resources[r].finish_of(edge) for r, edge in self._held.get(node, ())]
        return max((time for time in times if time is not None), default=0.0)

    def take(self, node: int, time: float, now: float) -> None:
        """Note that a node was scheduled at `time` and takes until `now`."""
        direction, tracker = self._direction, self._tracker
        for resource, edge in self._held.pop(node, ()):
            self._resources[resource].delete(edge, time)
        instructions = self._graph.instructions
        edges = zip(direction.ahead[node], direction.ahead_latency[node], strict=True)
        for other, latency in edges:
            before, after = (node, other) if tracker.config.top_down_scheduling else (other, node)
            for resource in tracker.shared_by(instructions[before], instructions[after]):
                shared = self._resources.setdefault(resource, SharedResource())
                shared.add((node, other), latency, now)
                self._held.setdefault(other, []).append((resource, (node, other)))
                self._raise_ready_times(shared)

    def _raise_ready_times(self, shared: SharedResource[tuple[int, int]]) -> None:
        ready_time = self._ready_time
        for (_, release), finish in zip(shared.operations, shared.finish, strict=True):
            if 0 <= ready_time[release] < finish:
                ready_time[release] = finish
