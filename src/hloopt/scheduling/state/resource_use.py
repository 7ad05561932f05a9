"""The use of resources while one computation is scheduled."""

from __future__ import annotations

from collections.abc import Hashable

from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.resources.in_use import ResourcesInUse
from hloopt.scheduling.resources.resource import Hazard, Resource, Usage
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.scheduling.state.node_facts import limited_needs, net_uses


class ResourceUse(ResourcesInUse):
    """The rest of each resource, and the nodes that have it or wait for it."""

    def __init__(self, graph: ScheduleGraph, tracker: ResourceTracker) -> None:
        super().__init__(tracker.resources)
        self._graph = graph
        self._resources = tracker.resources
        self.needs = limited_needs(graph, tracker)
        self.net = net_uses(graph, tracker)
        self.waiting_occupiers = [0] * len(tracker.resources)
        self.constrained: set[int] = set()
        """Resources of which nothing is left while occupiers wait."""
        self.overlap_check = tracker.overlap_check()

    # -- questions ------------------------------------------------------------------------------

    def fits(self, node: int) -> bool:
        """Whether enough is left of what a node needs."""
        needs = self.needs[node]
        if self.overlap_check is not None:
            return self.overlap_check(self._graph.instructions[node], needs, self)
        remaining = self.remaining
        return all(count <= remaining[resource] for resource, count in needs)

    def fit_fact(self, node: int) -> Hashable:
        """Cache key: nodes with equal keys get equal answers from `fits`."""
        needs = self.needs[node]
        if needs and self.overlap_check is not None:
            return needs, self.overlap_check.fact(self._graph.instructions[node])
        return needs

    def shortage(self, node: int) -> tuple[Resource, int] | None:
        """The first resource that a node wants more of than is left, and how much is missing."""
        for resource, count in self.needs[node]:
            if count > self.remaining[resource]:
                return self._resources[resource], count - self.remaining[resource]
        return None

    def is_constrained(self, node: int) -> bool:
        """Whether nothing is left of a resource of a node while others wait for it."""
        return any(resource in self.constrained for resource, _ in self._graph.uses[node])

    def serial_conflicts(self, node: int) -> int:
        """The number of operations that are in flight on the serial resources of a node."""
        resources = self._resources
        return sum(
            len(self.in_flight[r])
            for r, _ in self._graph.uses[node]
            if resources[r].hazard is Hazard.SERIAL
        )

    # -- steps ----------------------------------------------------------------------------------

    def reach(self, node: int) -> None:
        """Note that a node waits for what it occupies."""
        for resource in self._graph.occupies[node]:
            self.waiting_occupiers[resource] += 1
            self._note_constraint(resource)

    def take(self, node: int) -> None:
        """Let a node occupy and release what it does. O(uses)."""
        for resource, usage in self.net[node]:
            if usage is Usage.OCCUPY:
                self.remaining[resource] -= 1
                self.waiting_occupiers[resource] -= 1
            elif usage is Usage.RELEASE:
                self.remaining[resource] += 1
            self._note_constraint(resource)

    def note_in_flight(self, node: int) -> None:
        """Note what a node, which was scheduled, begins and ends. O(uses)."""
        graph = self._graph
        instruction = graph.instructions[node]
        for resource in graph.occupies[node]:
            holder = instruction
            if graph.is_done[node] and graph.is_start[graph.number[instruction.operands[0]]]:
                holder = instruction.operands[0]
            self.in_flight[resource][holder] = None
        for resource in graph.releases[node]:
            self.in_flight[resource].pop(instruction, None)

    def _note_constraint(self, resource: int) -> None:
        if self.remaining[resource] == 0 and self.waiting_occupiers[resource] > 0:
            self.constrained.add(resource)
        else:
            self.constrained.discard(resource)
