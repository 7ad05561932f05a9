"""The nodes and edges that a computation's schedule must respect, by original position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hloopt.analysis.latency import LatencyModel
from hloopt.analysis.latency.fixed import moves_no_data
from hloopt.analysis.latency.model import ORDINARY_EDGE, Time
from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.scheduling.graph.edges import (
    BufferHazards,
    Edge,
    TransferLoops,
)
from hloopt.scheduling.resources.hints import NO_HINTS
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
    times: list[Time] = field(default_factory=list)
    """The times of the nodes by the model."""
    cost: list[float] = field(default_factory=list)
    """Their cycles, unless a target's edit changes them."""
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
    _depths: tuple[list[float], list[int]] | None = None
    """`depth` and `graph_depth`, which few configurations ask for."""
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
        """Fill the facts about single nodes: few have any, so only these are looked at in turn."""
        instructions, count = self.instructions, len(self.instructions)
        self.uses = [tracker.uses(instruction) for instruction in instructions]
        self.occupies, self.releases = [()] * count, [()] * count
        self.is_start, self.is_done = [False] * count, [False] * count
        self.force_early, self.force_delay = [False] * count, [False] * count
        self.delay_priority, self.delay_after_target = [0] * count, [False] * count
        for number, uses in enumerate(self.uses):
            if uses:
                self.occupies[number] = _resources(uses, Usage.OCCUPY)
                self.releases[number] = _resources(uses, Usage.RELEASE)
        asynchronous = tracker.asynchronous
        for number, instruction in enumerate(instructions):
            if instruction.opcode in asynchronous:
                self.is_start[number] = tracker.is_start(instruction)
                self.is_done[number] = tracker.is_done(instruction)
        for number, instruction in enumerate(instructions):
            is_start, is_done = self.is_start[number], self.is_done[number]
            hints = tracker.hints(instruction, is_start=is_start, is_done=is_done)
            if hints is not NO_HINTS:
                self.force_early[number] = hints.force_early
                self.force_delay[number] = hints.force_delay
                self.delay_priority[number] = hints.priority
        for number, instruction in enumerate(instructions):
            group = group_of(instruction)
            if group is not None:
                self.group[number] = group
        self.is_no_work = [_is_no_work(instruction) for instruction in instructions]
        self.times = [model.node_time(instruction) for instruction in instructions]
        self.cost = [time.cycles for time in self.times]
        self.is_valuable = [tracker.is_valuable(instruction) for instruction in instructions]

    def takes_no_choice(self, node: int) -> bool:
        """Whether a node is scheduled as soon as it is ready: it takes no time, and nobody asks for
        a place. Rules have no say."""
        return self.is_no_work[node] and node not in self.group and node not in self.preference

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
        self._look_up(order)
        if tracker.config.top_down_scheduling:
            for node in reversed(order):
                self._look_down(node)
        if tracker.config.enable_selective_resources:
            self._count_hops(order, tracker)

    def _look_up(self, order: list[int]) -> None:
        """Fill the asynchronous depths, in a topological order."""
        depths, is_done = self.async_depth, self.is_done
        for node in order:
            depth = 0.0
            if is_done[node]:
                latencies = self.predecessor_latency[node]
                for before, latency in zip(self.predecessors[node], latencies, strict=True):
                    depth = max(depth, depths[before] + latency)
            else:
                for before in self.predecessors[node]:
                    if depths[before] > depth:
                        depth = depths[before]
            depths[node] = depth

    @property
    def depth(self) -> list[float]:
        """The time of the longest path from the top to each node, without it. O(edges), once."""
        return self._known_depths()[0]

    @property
    def graph_depth(self) -> list[int]:
        """The number of edges on the longest path from the top. O(edges), once."""
        return self._known_depths()[1]

    def _known_depths(self) -> tuple[list[float], list[int]]:
        if self._depths is None:
            count = len(self.instructions)
            times, steps = [0.0] * count, [0] * count
            for node in self._topological_order():
                latencies = self.predecessor_latency[node]
                for before, latency in zip(self.predecessors[node], latencies, strict=True):
                    times[node] = max(times[node], times[before] + self.cost[before] + latency)
                    steps[node] = max(steps[node], steps[before] + 1)
            self._depths = times, steps
        return self._depths

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
