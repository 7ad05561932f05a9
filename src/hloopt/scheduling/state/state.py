"""The state of scheduling one computation: time, resources, memory and ready nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush

from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.memory.pressure import BufferLife, Pressure
from hloopt.scheduling.resources.tracker import (
    Hazard,
    Resource,
    ResourceTracker,
    Usage,
)
from hloopt.scheduling.state.node_facts import (
    has_delayed_start,
    host_send_dones,
    limited_needs,
    releases_hazard,
    unlocks,
)
from hloopt.scheduling.state.sharing import Sharing

NOT_READY = -1.0
"""The ready time of a node that waits for others."""


class SchedulingState:
    """State that changes while one computation is scheduled, and facts about its nodes.

    Nodes are numbers of the graph. "Behind" a node is what is scheduled before it, "ahead" what
    waits for it: bottom up these are what comes after and before it in the program.
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
        self.life = life
        self.top_down = config.top_down_scheduling
        self.memory_limit = memory_limit
        count = len(graph.instructions)
        self._orient()

        self.sequence: list[int] = []
        self.on_chosen: list[Callable[[int], None]] = []
        """Called with each node when it was chosen, before anything changes."""
        self.on_taken: Callable[[int], None] | None = None
        """Called with each node that was scheduled."""
        self.is_taken = [False] * count
        self.now = 0.0
        self.ready_time = [NOT_READY] * count
        self.waiting = [len(edges) for edges in self.behind]
        """The number of edges from behind that are still open, per node."""
        self.ready: list[int] = []
        self.place = [-1] * count
        """The place in the ready list of a node; -1 if it is not."""
        self.on_change: Callable[[int], None] | None = None
        """Called with each ready node of which something changed that rules read."""
        self.on_removed: Callable[[int], None] | None = None
        """Called with each node that is not ready any more."""
        self.no_work: list[int] = []
        self.becoming_ready: list[float] = []
        """A heap of the times at which nodes of the ready list can run without a stall."""

        resources = len(tracker.resources)
        self.remaining = [
            resource.limit if resource.limit is not None else 1 << 62
            for resource in tracker.resources
        ]
        self.waiting_occupiers = [0] * resources
        self.in_flight: list[dict[int, None]] = [{} for _ in range(resources)]
        self.net = [
            tracker.net_uses(instruction) if uses else ()
            for instruction, uses in zip(graph.instructions, graph.uses, strict=True)
        ]
        self.needs = limited_needs(graph, tracker)
        self.constrained: set[int] = set()
        """Resources of which nothing is left while occupiers wait."""
        self._overlap_check = tracker.overlap_check()
        self._note_facts()

        self.pressure = Pressure(life, life.states[graph.computation].live_below)
        allocated, released = life.allocated, life.released
        if self.top_down:
            allocated, released = life.allocated_top_down, life.released_top_down
        self.allocated = [allocated(i) for i in graph.instructions]
        self.released = [released(i) for i in graph.instructions]
        self.inside = [life.peak_inside(i) for i in graph.instructions]
        self._outlooks: dict[int, tuple[int, int]] = {}
        self._readers: dict[int, list[int]] = {}
        """By buffer, the nodes whose outlook depends on whether it is alive."""
        if config.minds_memory:
            self._find_readers()

        self._sharing = Sharing(self) if config.resource_sharing else None
        self.has_groups = bool(graph.group)
        self.selective_releasers: list[int] = []
        self.creates_ready = [
            sum(self.waiting[node] == 1 for node in ahead) for ahead in self.ahead
        ]
        """The number of nodes that wait for each node alone."""

    def _orient(self) -> None:
        graph = self.graph
        up = (graph.predecessors, graph.predecessor_latency)
        down = (graph.successors, graph.successor_latency)
        ahead, behind = (down, up) if self.top_down else (up, down)
        self.ahead, self.ahead_latency = ahead
        self.behind, self.behind_latency = behind
        self.async_depth = graph.async_height if self.top_down else graph.async_depth

    def _find_readers(self) -> None:
        for node in range(len(self.graph.instructions)):
            for other in self._seen_with(node):
                for buffer in {*self.allocated[other], *self.released[other]}:
                    self._readers.setdefault(buffer, []).append(node)

    def _seen_with(self, node: int) -> tuple[int, ...]:
        """A node, and the start that its outlook includes."""
        graph = self.graph
        if graph.is_done[node] and not self.top_down and graph.predecessors[node]:
            start = graph.predecessors[node][0]
            if graph.is_start[start]:
                return node, start
        return (node,)

    def _note_facts(self) -> None:
        graph = self.graph
        self.occupies_any = [bool(occupied) for occupied in graph.occupies]
        self.releases_any = [bool(released) for released in graph.releases]
        self.releases_nonextendable = releases_hazard(graph, self.tracker, Hazard.NONEXTENDABLE)
        self._releases_selective = releases_hazard(graph, self.tracker, Hazard.SELECTIVE)
        self.unlocks = unlocks(graph, top_down=self.top_down)
        self.has_delayed_start = has_delayed_start(graph)
        self.host_send_dones = host_send_dones(graph)

    # -- questions of the rules -----------------------------------------------------------------

    @property
    def usage(self) -> int:
        """Bytes in use."""
        return self.pressure.usage

    def outlook(self, node: int) -> tuple[int, int]:
        """What scheduling a node would change, in bytes, and what it adds at most meanwhile.

        A done right behind its start is seen with that.
        """
        found = self._outlooks.get(node)
        if found is None:
            seen = [
                self.pressure.outlook(self.allocated[n], self.released[n], self.inside[n])
                for n in self._seen_with(node)
            ]
            found = min(change for change, _ in seen), max(peak for _, peak in seen)
            self._outlooks[node] = found
        return found

    def fits(self, node: int) -> bool:
        """Whether enough is left of what a node needs."""
        if self._overlap_check is not None:
            return self._overlap_check(self, node)
        remaining = self.remaining
        return all(count <= remaining[resource] for resource, count in self.needs[node])

    def obstacle(self, node: int) -> str:
        """The reason why a ready node may not be chosen, in XLA's word; empty if it may."""
        if node in self.graph.group:
            return "kAnnotationNotReady"
        return "" if not self.needs[node] or self.fits(node) else "kExceedsOverlapLimit"

    def shortage(self, node: int) -> tuple[Resource, int] | None:
        """The first resource that a node wants more of than is left, and how much is missing."""
        for resource, count in self.needs[node]:
            if count > self.remaining[resource]:
                return self.tracker.resources[resource], count - self.remaining[resource]
        return None

    def fit_fact(self, node: int) -> Hashable:
        """Cache key: nodes with equal keys get equal answers from `fits`."""
        needs = self.needs[node]
        if needs and self._overlap_check is not None:
            return needs, self._overlap_check.fact(self, node)
        return needs

    def is_constrained(self, node: int) -> bool:
        """Whether nothing is left of a resource of a node while others wait for it."""
        return any(resource in self.constrained for resource, _ in self.graph.uses[node])

    def serial_conflicts(self, node: int) -> int:
        """The number of operations that are in flight on the serial resources of a node."""
        resources = self.tracker.resources
        return sum(
            len(self.in_flight[r])
            for r, _ in self.graph.uses[node]
            if resources[r].hazard is Hazard.SERIAL
        )

    def should_be_kept(self, node: int) -> bool:
        """Whether a node is valuable and another ready one is near a selective resource."""
        hops = self.graph.hops_to_selective
        nearest = min((hops[other] for other in self.ready if other != node), default=1 << 60)
        return self.graph.is_valuable[node] and (
            nearest <= self.config.max_hops_to_closest_selective_overlap
        )

    # -- steps ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make what nothing is behind ready."""
        for node, count in enumerate(self.waiting):
            if not count:
                self.ready_time[node] = 0.0
                self._enqueue(node)

    def _enqueue(self, node: int) -> bool:
        """Put a node in a list of what is ready; whether it is to be chosen by the rules."""
        graph = self.graph
        if graph.is_no_work[node] and node not in graph.group and node not in graph.preference:
            self.no_work.append(node)
            return False
        self.place[node] = len(self.ready)
        self.ready.append(node)
        self.note_change(node)
        return True

    def note_change(self, node: int) -> None:
        """Note that something changed that rules read of a node, which may be ready."""
        if self.place[node] >= 0 and self.on_change is not None:
            self.on_change(node)

    def _remove_ready(self, node: int) -> None:
        """Take a node out of the ready list; the last one comes in its place."""
        place = self.place[node]
        last = self.ready.pop()
        if last != node:
            self.ready[place] = last
            self.place[last] = place
        self.place[node] = -1
        if self.on_removed is not None:
            self.on_removed(node)

    def prepare_to_choose(self) -> None:
        """Bring what rules ask of memory up to date."""
        usage = self.pressure.usage
        self.minds_memory = self.config.minds_memory and usage > self.memory_limit // 2
        self.is_over_limit = self.minds_memory and usage >= self.memory_limit

    def take(self, node: int) -> None:
        """Put a node next. O(edges + buffers + log nodes)."""
        for listener in self.on_chosen:
            listener(node)
        if self.place[node] >= 0:
            self._remove_ready(node)
        graph = self.graph
        self.sequence.append(node)
        self.is_taken[node] = True
        if self.config.enable_selective_resources:
            self._delay_releasers(node)
        if self.net[node]:
            self._use_resources(node)
        ready_time = self.ready_time
        time = self.now
        for behind, latency in zip(self.behind[node], self.behind_latency[node], strict=True):
            if ready_time[behind] + latency > time:
                time = ready_time[behind] + latency
        if self._sharing is not None:
            time = max(time, self._sharing.finish(node))
        ready_time[node] = time
        self.now = time + graph.cost[node]
        if self._sharing is not None:
            self._sharing.take(node, time, self.now)
        while self.becoming_ready and self.becoming_ready[0] < self.now:
            heappop(self.becoming_ready)
        self._open_edges(node)
        if graph.uses[node]:
            self._note_in_flight(node)
        self._change_memory(node)
        if self.on_taken is not None:
            self.on_taken(node)

    def _change_memory(self, node: int) -> None:
        changed = self.pressure.move(self.allocated[node], self.released[node], self.inside[node])
        for buffer in changed:
            for reader in self._readers.get(buffer, ()):
                self._outlooks.pop(reader, None)
                self.note_change(reader)

    def _open_edges(self, node: int) -> None:
        waiting = self.waiting
        for ahead in self.ahead[node]:
            waiting[ahead] -= 1
            count = waiting[ahead]
            if count == 1:
                self._note_last_wait(ahead)
            elif not count:
                self._make_ready(ahead)

    def _note_last_wait(self, node: int) -> None:
        """One edge of a node is left: what it comes from will make it ready."""
        for behind in self.behind[node]:
            if not self.is_taken[behind]:
                self.creates_ready[behind] += 1
                self.note_change(behind)
                return

    def _make_ready(self, node: int) -> None:
        ready_time = self.ready_time
        time = self.now
        for behind, latency in zip(self.behind[node], self.behind_latency[node], strict=True):
            if ready_time[behind] + latency > time:
                time = ready_time[behind] + latency
        ready_time[node] = time
        if self._sharing is not None:
            time = max(time, self._sharing.finish(node))
            ready_time[node] = time
        for resource in self.graph.occupies[node]:
            self.waiting_occupiers[resource] += 1
            self._note_constraint(resource)
        if not self._enqueue(node):
            return
        if time > self.now:
            heappush(self.becoming_ready, time)
        if self._releases_selective[node]:
            self.selective_releasers.append(node)

    def _use_resources(self, node: int) -> None:
        for resource, usage in self.net[node]:
            if usage is Usage.OCCUPY:
                self.remaining[resource] -= 1
                self.waiting_occupiers[resource] -= 1
            elif usage is Usage.RELEASE:
                self.remaining[resource] += 1
            self._note_constraint(resource)

    def _note_constraint(self, resource: int) -> None:
        if self.remaining[resource] == 0 and self.waiting_occupiers[resource] > 0:
            self.constrained.add(resource)
        else:
            self.constrained.discard(resource)

    def _note_in_flight(self, node: int) -> None:
        graph = self.graph
        for resource in graph.occupies[node]:
            holder = node
            if graph.is_done[node]:
                start = graph.number[graph.instructions[node].operands[0]]
                holder = start if graph.is_start[start] else node
            self.in_flight[resource][holder] = None
        for resource in graph.releases[node]:
            self.in_flight[resource].pop(node, None)

    def _delay_releasers(self, node: int) -> None:
        if node in self.selective_releasers:
            self.selective_releasers.remove(node)
        if not self.graph.is_valuable[node]:
            for releaser in self.selective_releasers:
                self.ready_time[releaser] += self.graph.cost[node]
