"""The nodes and edges that a computation's schedule must respect, by original position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hloopt.analysis.latency import LatencyModel
from hloopt.analysis.latency.fixed import moves_no_data
from hloopt.analysis.latency.model import ORDINARY_EDGE
from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.scheduling.graph.edges import (
    BufferHazards,
    Edge,
    TransferLoops,
)
from hloopt.scheduling.resources.resource import Hazard, Usage, Uses
from hloopt.scheduling.resources.tracker import ResourceTracker

NO_HOPS = 1 << 60
"""The distance to a selective resource that is not occupied anywhere on the way."""

_TRANSPOSE, _TUPLE = Opcode.TRANSPOSE, Opcode.TUPLE  # slow to look up in a loop
_NO_WORK = frozenset(
    (
        *(Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST, Opcode.CONSTANT, Opcode.PARAMETER),
        *(Opcode.BROADCAST, Opcode.IOTA),
    )
)


@dataclass(slots=True)
class ScheduleGraph:
    """Nodes are numbered by the incoming schedule; parallel edges are kept, all of them count."""

    computation: Computation
    instructions: list[Instruction]
    number: dict[Instruction, int]
    predecessors: list[list[int]] = field(default_factory=list)
    """Nodes that come earlier in the program, per edge."""
    predecessor_latency: list[list[float]] = field(default_factory=list)
    successors: list[list[int]] = field(default_factory=list)
    successor_latency: list[list[float]] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    is_start: list[bool] = field(default_factory=list)
    is_done: list[bool] = field(default_factory=list)
    uses: list[Uses] = field(default_factory=list)
    occupies: list[tuple[int, ...]] = field(default_factory=list)
    """The resources each node takes when it is scheduled, with repetitions."""
    releases: list[tuple[int, ...]] = field(default_factory=list)
    force_early: list[bool] = field(default_factory=list)
    force_delay: list[bool] = field(default_factory=list)
    delay_priority: list[int] = field(default_factory=list)
    delay_after_target: list[bool] = field(default_factory=list)
    preference: dict[int, float] = field(default_factory=dict)
    group: dict[int, int] = field(default_factory=dict)
    """The scheduling group of each annotated node."""
    overwritten_reader: dict[int, int] = field(default_factory=dict)
    """Of each start that writes over what others read: the costliest of these readers."""
    is_no_work: list[bool] = field(default_factory=list)
    is_valuable: list[bool] = field(default_factory=list)
    async_depth: list[float] = field(default_factory=list)
    async_height: list[float] = field(default_factory=list)
    graph_depth: list[int] = field(default_factory=list)
    """The number of edges on the longest path from the top."""
    depth: list[float] = field(default_factory=list)
    """The time of the longest path from the top, without the node."""
    hops_to_selective: list[int] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        computation: Computation,
        model: LatencyModel,
        tracker: ResourceTracker,
        hazards: BufferHazards,
        edit: Callable[[ScheduleGraph], None] | None = None,
    ) -> ScheduleGraph:
        """The graph of a computation in its present order, after a target's edit of it.

        O(edges), and what is asked of reachability where buffers are overwritten. Raises
        PassRefused if an instruction depends on itself, or a hint is malformed.
        """
        computation.link_users()
        instructions = list(computation.instructions)
        graph = cls(computation, instructions, {i: n for n, i in enumerate(instructions)})
        graph._make_nodes(model, tracker)
        graph._make_edges(model, hazards, top_down=tracker.config.top_down_scheduling)
        if edit is not None:
            edit(graph)
        graph._analyze(tracker)
        return graph

    # -- nodes ----------------------------------------------------------------------------------

    def _make_nodes(self, model: LatencyModel, tracker: ResourceTracker) -> None:
        asynchronous = tracker.asynchronous
        for number, instruction in enumerate(self.instructions):
            uses = tracker.uses(instruction)
            self.uses.append(uses)
            self.occupies.append(_resources(uses, Usage.OCCUPY) if uses else ())
            self.releases.append(_resources(uses, Usage.RELEASE) if uses else ())
            may_be = instruction.opcode in asynchronous
            is_start = may_be and tracker.is_start(instruction)
            is_done = may_be and tracker.is_done(instruction)
            self.is_start.append(is_start)
            self.is_done.append(is_done)
            hints = tracker.hints(instruction, is_start=is_start, is_done=is_done)
            self.force_early.append(hints.force_early)
            self.force_delay.append(hints.force_delay)
            self.delay_priority.append(hints.priority)
            group = group_of(instruction)
            if group is not None:
                self.group[number] = group
            self.is_no_work.append(_is_no_work(instruction))
        self.cost = [model.node_cost(instruction) for instruction in self.instructions]
        self.is_valuable = [tracker.is_valuable(i) for i in self.instructions]
        self.delay_after_target = [False] * len(self.instructions)

    # -- edges ----------------------------------------------------------------------------------

    def add_edge(self, source: int, target: int, latency: float) -> None:
        """Let `target` come after `source` in the program, at least `latency` later."""
        self.successors[source].append(target)
        self.successor_latency[source].append(latency)
        self.predecessors[target].append(source)
        self.predecessor_latency[target].append(latency)

    def _make_edges(self, model: LatencyModel, hazards: BufferHazards, *, top_down: bool) -> None:
        count = len(self.instructions)
        self.predecessors = [[] for _ in range(count)]
        self.predecessor_latency = [[] for _ in range(count)]
        self.successors = [[] for _ in range(count)]
        self.successor_latency = [[] for _ in range(count)]
        number, latency = self.number, model.latency
        predecessors, predecessor_latency = self.predecessors, self.predecessor_latency
        found: list[Edge] = []
        loops = TransferLoops(hazards, self.instructions)
        for source, instruction in enumerate(self.instructions):
            after, after_latency = self.successors[source], self.successor_latency[source]
            for user in (*instruction.users, *instruction.control_successors):
                target, time = number[user], latency(instruction, user)  # as `add_edge`, for most
                after.append(target)
                after_latency.append(time)
                predecessors[target].append(source)
                predecessor_latency[target].append(time)
            if self.is_done[source]:
                for earlier, later in hazards.edges(instruction, found):
                    found.append((earlier, later))
                    reader, start = number[earlier], number[later]
                    self.add_edge(reader, start, ORDINARY_EDGE)
                    costliest = self.overwritten_reader.setdefault(start, reader)
                    if self.cost[reader] > self.cost[costliest]:
                        self.overwritten_reader[start] = reader
                for earlier, later in loops.edges(instruction, top_down=top_down):
                    self.add_edge(number[earlier], number[later], ORDINARY_EDGE)

    # -- facts over all edges -------------------------------------------------------------------

    def _analyze(self, tracker: ResourceTracker) -> None:
        order = self._topological_order()
        count = len(order)
        self.async_depth = [0.0] * count
        self.async_height = [0.0] * count
        self.graph_depth = [0] * count
        self.depth = [0.0] * count
        self._look_up(order)
        if tracker.config.top_down_scheduling:
            for node in reversed(order):
                self._look_down(node)
        if tracker.config.enable_selective_resources:
            self._count_hops(order, tracker)

    def _look_up(self, order: list[int]) -> None:
        """Fill the depths, in a topological order."""
        async_depths, depths, graph_depths = self.async_depth, self.depth, self.graph_depth
        cost, all_latencies = self.cost, self.predecessor_latency
        for node in order:
            async_depth = depth = 0.0
            graph_depth = 0
            is_done = self.is_done[node]
            for before, latency in zip(self.predecessors[node], all_latencies[node], strict=True):
                value = async_depths[before] + latency if is_done else async_depths[before]
                if value > async_depth:
                    async_depth = value
                value = depths[before] + cost[before] + latency
                if value > depth:
                    depth = value
                if graph_depths[before] >= graph_depth:
                    graph_depth = graph_depths[before] + 1
            async_depths[node] = async_depth
            depths[node] = depth
            graph_depths[node] = graph_depth

    def _look_down(self, node: int) -> None:
        latencies = self.successor_latency[node]
        extra = latencies if self.is_start[node] else [0.0] * len(latencies)
        heights = [
            self.async_height[after] + latency
            for after, latency in zip(self.successors[node], extra, strict=True)
        ]
        self.async_height[node] = max(heights, default=0.0)

    def _count_hops(self, order: list[int], tracker: ResourceTracker) -> None:
        self.hops_to_selective = [NO_HOPS] * len(order)
        for node in order:
            if any(tracker.resources[r].hazard is Hazard.SELECTIVE for r in self.occupies[node]):
                self.hops_to_selective[node] = 0
                continue
            nearest = min(
                (self.hops_to_selective[p] for p in self.predecessors[node]), default=NO_HOPS
            )
            self.hops_to_selective[node] = min(nearest + 1, NO_HOPS)

    def _topological_order(self) -> list[int]:
        waiting = [len(before) for before in self.predecessors]
        order = [node for node, count in enumerate(waiting) if not count]
        for node in order:  # grows
            for after in self.successors[node]:
                waiting[after] -= 1
                if not waiting[after]:
                    order.append(after)
        if len(order) < len(waiting):
            # Of XLA's own edges only those between transfers and loops can make a cycle.
            stuck = [self.instructions[node] for node, count in enumerate(waiting) if count]
            loop = next((i for i in stuck if i.opcode is Opcode.WHILE), None)
            if loop is None:
                raise PassRefused(
                    f"'%{stuck[0].name}' cannot be scheduled: edges that the target's hook added "
                    "make a cycle",
                    help="an edge goes from what comes first in the program to what comes later",
                    span=self.computation.module.span_of(stuck[0]),
                )
            raise PassRefused(
                f"'%{loop.name}' cannot be scheduled: a transfer has to end before this loop, and "
                "depends on it",
                help="a send-done ends before the loops that depend on the recv-done it waits for",
                span=self.computation.module.span_of(loop),
            )
        return order


def _resources(uses: Uses, wanted: Usage) -> tuple[int, ...]:
    return tuple(resource for resource, usage in uses if usage is wanted)


def _is_no_work(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    if opcode in _NO_WORK:
        return True
    if opcode is _TRANSPOSE:
        return moves_no_data(instruction)
    return (
        opcode is _TUPLE
        and len(instruction.users) == 1
        and next(iter(instruction.users)).opcode is Opcode.WHILE
    )
