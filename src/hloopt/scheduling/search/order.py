"""An order of a computation that changes piece by piece and keeps every rule."""

from __future__ import annotations

from bisect import bisect_left

from hloopt.scheduling.search.problem import NO_PAIR, Problem
from hloopt.scheduling.search.timeline import Event, Timeline


class Order:
    """An order, where each node is in it, what it waits for and what memory it needs."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        count = len(problem.cost)
        self.nodes = list(problem.nodes)
        self.position = [0] * count
        for place, node in enumerate(self.nodes):
            self.position[node] = place
        self.claimants = [n for n in self.nodes if problem.claims[n] is not None]
        """The nodes that resources matter to, by place."""
        self._work = [0] * (count + 1)
        """The ticks of all nodes before each position."""
        memory = problem.memory
        self._last = [-1] * len(memory.size)
        """By buffer the position of its last use."""
        for buffer in memory.alive_at_end:
            self._last[buffer] = count
        self._below = [0] * (count + 1)
        """Bytes alive after each position, more than are below the call."""
        self._seen = [0] * len(memory.size)
        self._tick = 0
        self._is_pinned = bool(problem.follower or problem.not_later or problem.not_earlier)
        self._set_work(0, self.nodes)
        self._set_memory(0, self.nodes)
        self.timeline = Timeline(problem, self._events(0, self.nodes))

    # -- trying ---------------------------------------------------------------------------------

    def gain(self, at: int, nodes: list[int]) -> int:
        """By how much the waiting changes if `nodes` stand from position `at` on.

        They are the nodes that stand there, in another order. O(nodes).
        """
        events = self._events(at, nodes)
        if not events:
            return 0
        return self.timeline.gain(self.timeline.index(at, self.position), events)

    def is_allowed(self, at: int, nodes: list[int]) -> bool:
        """Whether that breaks no rule; dependencies are taken to hold. O(nodes and buffers)."""
        return (
            not (self._is_pinned and self._moves_pinned(at, nodes))
            and self._has_resources(at, nodes)
            and self._has_memory(at, nodes)
        )

    def replace(self, at: int, nodes: list[int]) -> None:
        """Let `nodes` stand from position `at` on."""
        events = self._events(at, nodes)
        low = self.timeline.index(at, self.position) if events else 0
        claimants = [n for n in nodes if self.problem.claims[n] is not None]
        first = self._claimant_index(at) if claimants else 0
        self.nodes[at : at + len(nodes)] = nodes
        for position, node in enumerate(nodes, at):
            self.position[node] = position
        self._set_work(at, nodes)
        self._set_memory(at, nodes)
        self.claimants[first : first + len(claimants)] = claimants
        if events:
            self.timeline.replace(low, events)

    # -- memory of the order as it is -----------------------------------------------------------

    def usage_below(self, node: int) -> int:
        """Bytes alive after a node, more than are below the call."""
        return self._below[self.position[node] + 1]

    def last_use(self, buffer: int) -> int:
        """The position of the last use of a buffer; beyond all where it is alive at the end."""
        return self._last[buffer]

    def needed(self, position: int) -> int:
        """Bytes alive while the node at a position runs, more than are below the call."""
        memory, node = self.problem.memory, self.nodes[position]
        begun = sum(memory.size[b] for b in memory.begins[node] if self._last[b] >= position)
        return max(self._below[position] + begun, self._below[position + 1] + memory.inside[node])

    def peak(self) -> int:
        """The most bytes alive at a time, more than are below the call. O(nodes)."""
        return self.highest()[0]

    def highest(self) -> tuple[int, int]:
        """The peak, and the first position that it is at. O(nodes)."""
        needed = [self.needed(position) for position in range(len(self.nodes))]
        peak = max(needed, default=0)
        return peak, needed.index(peak) if needed else 0

    # -- waiting --------------------------------------------------------------------------------

    def _events(self, at: int, nodes: list[int]) -> list[Event]:
        problem = self.problem
        cost, start, done = problem.cost, problem.pair_of_start, problem.pair_of_done
        work = self._work[at]
        found: list[Event] = []
        for node in nodes:
            work += cost[node]
            if start[node] != NO_PAIR or done[node] != NO_PAIR:
                found.append((node, work))
        return found

    def _set_work(self, at: int, nodes: list[int]) -> None:
        work = self._work[at]
        for position, node in enumerate(nodes, at + 1):
            work += self.problem.cost[node]
            self._work[position] = work

    # -- resources ------------------------------------------------------------------------------

    def _claimant_index(self, at: int) -> int:
        return bisect_left(self.claimants, at, key=self.position.__getitem__)

    def _has_resources(self, at: int, nodes: list[int]) -> bool:
        """Whether no more is in flight than limits allow. O(claimants) if these change places."""
        claims = self.problem.claims
        changed = [node for node in nodes if claims[node] is not None]
        if len(changed) < 2:
            return True
        low = self._claimant_index(at)
        high = low + len(changed)
        if self.claimants[low:high] == changed:
            return True
        if self.problem.claims_keep_order:
            return False
        order = [*self.claimants[:low], *changed, *self.claimants[high:]]
        if self.problem.bottom_up:
            order.reverse()
        left = list(self.problem.left)
        for node in order:
            claim = claims[node]
            assert claim is not None
            for resource, needed in claim[0]:
                if needed > left[resource]:
                    return False
            for resource, change in claim[1]:
                left[resource] += change
        return True

    # -- memory ---------------------------------------------------------------------------------

    def _has_memory(self, at: int, nodes: list[int]) -> bool:
        """Whether the peak stays within the limit. O(nodes and their buffers)."""
        memory = self.problem.memory
        size, uses, begins, inside = memory.size, memory.uses, memory.begins, memory.inside
        limit, last, seen = memory.limit, self._last, self._seen
        self._tick += 1
        tick = self._tick
        end = at + len(nodes)
        usage = self._below[end]
        for node in reversed(nodes):
            if inside[node] and usage + inside[node] > limit:
                return False
            for buffer in uses[node]:
                if last[buffer] < end and seen[buffer] != tick:
                    seen[buffer] = tick
                    usage += size[buffer]
            if usage > limit:
                return False
            for buffer in begins[node]:
                if last[buffer] >= end or seen[buffer] == tick:
                    usage -= size[buffer]
        return True

    def _set_memory(self, at: int, nodes: list[int]) -> None:
        memory = self.problem.memory
        size, uses, begins = memory.size, memory.uses, memory.begins
        last, seen = self._last, self._seen
        self._tick += 1
        tick = self._tick
        end = at + len(nodes)
        usage = self._below[end]
        for position in range(end - 1, at - 1, -1):
            node = nodes[position - at]
            for buffer in uses[node]:
                if last[buffer] < end and seen[buffer] != tick:
                    seen[buffer] = tick
                    last[buffer] = position
                    usage += size[buffer]
            for buffer in begins[node]:
                if last[buffer] >= end or seen[buffer] == tick:
                    usage -= size[buffer]
            self._below[position] = usage

    # -- groups and hints -----------------------------------------------------------------------

    def _moves_pinned(self, at: int, nodes: list[int]) -> bool:
        """Whether a scheduling group would be torn, or a node moved against its hint."""
        problem, position = self.problem, self.position
        place = {node: index for index, node in enumerate(nodes, at)}
        for node, follower in problem.follower.items():
            if node in place or follower in place:
                here = place.get(node, position[node])
                if place.get(follower, position[follower]) != here + 1:
                    return True
        return any(
            (node in problem.not_later and index > position[node])
            or (node in problem.not_earlier and index < position[node])
            for node, index in place.items()
        )
