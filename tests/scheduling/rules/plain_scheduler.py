"""XLA's latency-hiding scheduler, straight from its description: slow, to compare with.

Every fact is worked out anew whenever it is asked for, and all ready nodes are compared in turn.
Taken from the scheduler itself are only the live ranges of buffers and which readers of a buffer
come before what overwrites it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.scheduling.rules.plain_groups import PlainGroups
from tests.scheduling.rules.plain_resources import InUse, PlainResources
from tests.scheduling.rules.plain_rules import better
from tests.scheduling.rules.plain_sharing import Shared

from hloopt.analysis.latency import LatencyModel
from hloopt.ir import Computation, Instruction
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.graph.edges import BufferHazards
from hloopt.scheduling.memory.pressure import BufferLife
from hloopt.scheduling.resources.resource import Hazard

_NO_WORK = ("get-tuple-element", "bitcast", "constant", "parameter", "broadcast", "iota")
Edge = tuple[int, float]
"""A node and the latency on the way to or from it."""
Pair = tuple[int, int]
"""The node that opens an operation, and the one that closes it."""


class Blocked(Exception):
    """No node can be picked."""


class Choice(NamedTuple):
    """The way in which one node was picked."""

    name: str
    step: int
    now: float
    ready: list[tuple[str, float, str]]
    comparisons: list[tuple[str, str, str]]
    """The better of two, the worse and the rule, in turn."""
    group: int | None


class PlainScheduler:
    """Orders one computation."""

    def __init__(
        self,
        computation: Computation,
        config: SchedulerConfig,
        model: LatencyModel,
        life: BufferLife,
        hazards: BufferHazards,
        *,
        of_resources: Mapping[str, Hazard],
        preferences: Mapping[str, float],
        is_valuable: Callable[[Instruction], bool],
    ) -> None:
        self.config = config
        self.top_down = config.top_down_scheduling
        self.nodes = list(computation.instructions)
        self.number = {instruction: n for n, instruction in enumerate(self.nodes)}
        self.cost = [model.node_cost(instruction) for instruction in self.nodes]
        self.plain = PlainResources(config)
        self.use = InUse(self.plain, self.nodes)
        self._of_resources = of_resources
        self._is_valuable = is_valuable
        self.preferences = {
            n: preferences[i.name] for n, i in enumerate(self.nodes) if i.name in preferences
        }
        self.predecessors: list[list[Edge]] = [[] for _ in self.nodes]
        self.successors: list[list[Edge]] = [[] for _ in self.nodes]
        self._connect(model, hazards)
        self._note_hints()
        self._analyze()
        self._begin(life, computation)

    def limit(self, resource: str) -> int:
        return self.plain.limit(resource)

    def is_start(self, node: int) -> bool:
        return self.plain.is_start(self.nodes[node])

    def is_done(self, node: int) -> bool:
        return self.plain.is_done(self.nodes[node])

    def is_valuable(self, node: int) -> bool:
        return self._is_valuable(self.nodes[node])

    def occupies(self, node: int) -> bool:
        return any(self.use.resources(node, "occupy"))

    def releases(self, node: int) -> bool:
        return any(self.use.resources(node, "release"))

    def uses_hazard(self, node: int, usage: str, hazard: Hazard) -> bool:
        return any(self._of_resources.get(r) is hazard for r in self.use.resources(node, usage))

    def serial_conflicts(self, node: int) -> int:
        return sum(
            resource == used
            for used, _ in self.use.uses(node)
            if self._of_resources.get(used) is Hazard.SERIAL
            for resource, _ in self.use.in_flight
        )

    @property
    def unlocking(self) -> tuple[Callable[[int], bool], Callable[[int], list[int]]]:
        """The neighbours that count, and those of a node, for kUnlockDone."""
        if self.top_down:
            return self.is_start, lambda n: [self.number[u] for u in self.nodes[n].users]
        return self.is_done, lambda n: [self.number[o] for o in self.nodes[n].operands]

    # -- the graph ------------------------------------------------------------------------------

    def _connect(self, model: LatencyModel, hazards: BufferHazards) -> None:
        def add(source: Instruction, target: Instruction, latency: float) -> None:
            self.successors[self.number[source]].append((self.number[target], latency))
            self.predecessors[self.number[target]].append((self.number[source], latency))

        found: list[tuple[Instruction, Instruction]] = []
        for node in self.nodes:
            users = [other for other in self.nodes if node in other.operands]
            for after in (*users, *node.control_successors):
                add(node, after, model.latency(node, after))
            if self.plain.is_done(node):
                new = list(hazards.edges(node, found))
                found += new
                for reader, start in new:
                    add(reader, start, 1.0)
        self.ahead, self.behind = self.predecessors, self.successors
        if self.top_down:
            self.ahead, self.behind = self.successors, self.predecessors

    def _note_hints(self) -> None:
        self.force_early: set[int] = set()
        self.force_delay: set[int] = set()
        self.delay_after_target: set[int] = set()
        self.priority = [0] * len(self.nodes)
        self.group: dict[int, int] = {}
        for n, instruction in enumerate(self.nodes):
            hint = frontend_attribute(instruction, "scheduler_hint")
            opcode = instruction.opcode
            is_delayed = hint == "force_delay" and opcode in (
                *("custom-call", "async-start", "async-done"),
            )
            if is_delayed or (hint == "force_delay_async" and self.is_start(n)):
                self.force_delay.add(n)
                text = frontend_attribute(instruction, "scheduler_delay_priority")
                self.priority[n] = int(text or 0)
            elif (hint == "force_early" and opcode == "custom-call") or (
                hint == "force_delay_async" and self.is_done(n)
            ):
                self.force_early.add(n)
            group = frontend_attribute(instruction, "_scheduling_group_id")
            if group is not None:
                self.group[n] = int(group)

    def _analyze(self) -> None:
        count = len(self.nodes)
        self.graph_depth, self.hops = [0] * count, [1 << 60] * count
        self.depth, self.async_depth = [0.0] * count, [0.0] * count
        remaining = list(range(count))
        while remaining:
            node = next(
                n for n in remaining if not {b for b, _ in self.predecessors[n]} & {*remaining}
            )
            remaining.remove(node)
            for before, latency in self.predecessors[node]:
                own = self.async_depth[before] + (latency if self.is_done(node) else 0.0)
                self.async_depth[node] = max(self.async_depth[node], own)
                way = self.depth[before] + self.cost[before] + latency
                self.depth[node] = max(self.depth[node], way)
                self.graph_depth[node] = max(self.graph_depth[node], self.graph_depth[before] + 1)
                self.hops[node] = min(self.hops[node], self.hops[before] + 1)
            if self.uses_hazard(node, "occupy", Hazard.SELECTIVE):
                self.hops[node] = 0
        if self.top_down:
            self._find_heights()

    def _find_heights(self) -> None:
        heights: dict[int, float] = {}

        def height(node: int) -> float:
            if node not in heights:
                extra = self.is_start(node)
                edges = self.successors[node]
                found = (height(after) + (latency if extra else 0) for after, latency in edges)
                heights[node] = max(found, default=0.0)
            return heights[node]

        self.async_depth = [height(node) for node in range(len(self.nodes))]

    # -- memory ---------------------------------------------------------------------------------

    def _begin(self, life: BufferLife, computation: Computation) -> None:
        self.memory_limit = self.config.memory_limit
        self._size = life.size
        self._live = set(life.states[computation].live_below)
        self._initial = self.usage()
        self.peak = 0
        allocated, released = life.allocated, life.released
        if self.top_down:
            allocated, released = life.allocated_top_down, life.released_top_down
        self._allocated = [allocated(i) for i in self.nodes]
        self._released = [set(released(i)) for i in self.nodes]
        self._inside = [life.peak_inside(i) for i in self.nodes]
        self.now = 0.0
        self.ready_time = [-1.0] * len(self.nodes)
        self.becoming_ready: list[float] = []
        self.waiting = [len(edges) for edges in self.behind]
        self.ready: list[int] = []
        self.no_work: list[int] = []
        self.sequence: list[int] = []
        self.selective_releasers: list[int] = []
        self.choices: list[Choice] = []
        self._shared: dict[str, Shared[Pair]] = {}

    def usage(self) -> int:
        return self._bytes(self._live)

    def _bytes(self, buffers: set[int]) -> int:
        return sum(self._size[buffer] for buffer in buffers)

    def outlook(self, node: int) -> tuple[int, int]:
        """The change of usage and the most that a node adds; a done is seen with its start.

        A buffer of two operands counts twice.
        """
        new = sum(self._size[b] for b in self._allocated[node] if b not in self._live)
        change = new - self._bytes(self._released[node] & self._live)
        peak = max(new, self._inside[node])
        if self.is_done(node) and not self.top_down and self.predecessors[node]:
            start = self.predecessors[node][0][0]
            if self.is_start(start):
                other_change, other_peak = self.outlook(start)
                return min(change, other_change), max(peak, other_peak)
        return change, peak

    def _use_memory(self, node: int) -> None:
        before = self.usage() - self._initial
        self._live |= {*self._allocated[node]}
        most = self.usage() - self._initial
        self.peak = max(self.peak, before + self._inside[node], most)
        self._live -= self._released[node]

    # -- steps ----------------------------------------------------------------------------------

    def order(self) -> list[Instruction]:
        """The order of the program."""
        groups = PlainGroups(self)
        for node, count in enumerate(self.waiting):
            if not count:
                self.ready_time[node] = 0.0
                self._enqueue(node)
        while len(self.sequence) < len(self.nodes):
            if groups.attempt(most=True):
                continue
            picked = self._pick(groups)
            if picked is not None:
                self.take(picked)
            elif not groups.attempt(most=False):
                raise Blocked
        order = [self.nodes[node] for node in self.sequence]
        return order if self.top_down else order[::-1]

    def _pick(self, groups: PlainGroups) -> int | None:
        if self.no_work:
            self._note(self.no_work[-1], [])
            return self.no_work.pop()
        while True:
            candidates = [node for node in self.ready if not self._obstacle(node)]
            if candidates:
                break
            if not groups.dissolve_smallest():
                return None
        best, comparisons = candidates[0], []
        for other in candidates[1:]:
            found, rule = better(self, best, other)
            worse = best if found == other else other
            comparisons.append((self.nodes[found].name, self.nodes[worse].name, rule))
            best = found
        self._note(best, comparisons)
        return best

    def _obstacle(self, node: int) -> str:
        if node in self.group:
            return "kAnnotationNotReady"
        return "" if self.use.fits(self.use.needs(node)) else "kExceedsOverlapLimit"

    def _note(self, node: int, comparisons: list[tuple[str, str, str]]) -> None:
        nodes = self.nodes
        ready = [(nodes[n].name, self.ready_time[n], self._obstacle(n)) for n in self.ready]
        choice = Choice(
            nodes[node].name,
            len(self.sequence),
            self.now,
            ready,
            comparisons,
            self.group.get(node),
        )
        self.choices.append(choice)

    def take_of_group(self, node: int) -> None:
        """Take a member of a group, which then is in none."""
        self._note(node, [])
        self.take(node)
        del self.group[node]

    def take(self, node: int) -> None:
        if node in self.ready:  # the last comes in its place
            place = self.ready.index(node)
            self.ready[place] = self.ready[-1]
            self.ready.pop()
        self.sequence.append(node)
        if node in self.selective_releasers:
            self.selective_releasers.remove(node)
        if not self.is_valuable(node):
            for releaser in self.selective_releasers:
                self.ready_time[releaser] += self.cost[node]
        self.use.take(node)
        self.ready_time[node] = self._earliest(node)
        self.now = self.ready_time[node] + self.cost[node]
        if self.config.resource_sharing:
            self._share(node)
        self.becoming_ready = [time for time in self.becoming_ready if time >= self.now]
        for other, _ in self.ahead[node]:
            self.waiting[other] -= 1
            if not self.waiting[other]:
                self._reach(other)
        self.use.note_in_flight(node)
        self._use_memory(node)

    def _earliest(self, node: int) -> float:
        times = [self.ready_time[other] + latency for other, latency in self.behind[node]]
        times += [
            shared.finish()[edge]
            for shared in self._shared.values()
            for edge in shared.operations
            if edge[1] == node
        ]
        return max([self.now, *times])

    def _share(self, node: int) -> None:
        """End the operations that a node closes, and begin those that it opens."""
        for shared in self._shared.values():
            for edge in shared.operations:
                if edge[1] == node:
                    shared.delete(edge, self.ready_time[node])
        for other, latency in self.ahead[node]:
            start, done = (node, other) if self.top_down else (other, node)
            for resource, _ in self.use.uses(done):
                is_shared = self._of_resources.get(resource) is Hazard.SHAREABLE
                if is_shared and self.is_start(start) and self.is_done(done):
                    shared = self._shared.setdefault(resource, Shared())
                    shared.add((node, other), latency, self.now)
                    for (_, closing), finish in shared.finish().items():
                        if self.ready_time[closing] >= 0:
                            self.ready_time[closing] = max(self.ready_time[closing], finish)

    def _reach(self, node: int) -> None:
        self.ready_time[node] = self._earliest(node)
        self.use.waiting.update(self.use.resources(node, "occupy"))
        if self._enqueue(node):
            if self.ready_time[node] > self.now:
                self.becoming_ready.append(self.ready_time[node])
            if self.config.enable_selective_resources and self.uses_hazard(
                node, "release", Hazard.SELECTIVE
            ):
                self.selective_releasers.append(node)

    def _enqueue(self, node: int) -> bool:
        instruction = self.nodes[node]
        users = list(instruction.users)
        is_no_work = instruction.opcode in _NO_WORK or (
            instruction.opcode == "tuple" and [u.opcode for u in users] == ["while"]
        )
        if is_no_work and node not in self.group and node not in self.preferences:
            self.no_work.append(node)
            return False
        self.ready.append(node)
        return True
