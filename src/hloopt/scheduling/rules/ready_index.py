"""The ready nodes, arranged so that choosing the best looks at few of them.

The first rules of the order see most ready nodes as equal: all loop fusions of one size, all dones
that wait for the same resource. Such nodes are *peers*, and of them only the best by the remaining
rules can win. Those are a fixed key: async depth, then how well the cost fills the gap until the
next node becomes ready, then a rank that ends with the original position. So peers are kept by
depth, cost and rank, and a choice compares the *leaders* of the peers, however many are ready.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush

from hloopt.scheduling.rules.rule import Nodes, Rule
from hloopt.scheduling.state.state import SchedulingState

_Entry = tuple[int, int, int, int, int]
"""A rank (unlocks, creates ready nodes, position: the smallest is the best), the node, and the
version of its filing: entries of older versions are skipped wherever they come up."""


class _Level:
    """Peers of one async depth."""

    __slots__ = ("by_cost", "costs", "entries")

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.costs: list[float] = []
        """The costs that occur, ascending; none where it does not count how they fill a gap."""
        self.by_cost: dict[float, list[_Entry]] = {}

    def add_cost(self, cost: float) -> list[_Entry]:
        """The entries of a cost that did not occur so far."""
        insort(self.costs, cost)
        entries = self.by_cost[cost] = []
        return entries


class _Peers:
    __slots__ = ("deepest", "depths", "fills_gaps", "levels")

    deepest: _Level
    """The level on top of `depths`."""

    def __init__(self, *, fills_gaps: bool) -> None:
        self.fills_gaps = fills_gaps
        """Whether it counts how well the cost fills a gap."""
        self.levels: dict[float, _Level] = {}
        self.depths: list[float] = []
        """A heap of the depths of the levels, negative."""

    def add(self, entry: _Entry, depth: float, cost: float) -> None:
        level = self.levels.get(depth)
        if level is None:
            level = self.levels[depth] = _Level()
            heappush(self.depths, -depth)
            self.deepest = self.levels[-self.depths[0]]
        heappush(level.entries, entry)
        if self.fills_gaps:
            entries = level.by_cost.get(cost)
            heappush(level.add_cost(cost) if entries is None else entries, entry)


class ReadyIndex:
    """The ready nodes of a computation by what the rules read of them.

    Filing a node is O(log ready), besides the distinct costs among its peers; choosing is
    O(groups of peers). Usage of memory is read of each node only when one of its buffers begins or
    ends to live.
    """

    def __init__(self, state: SchedulingState, first_rules: Sequence[Rule]) -> None:
        self._state = state
        self._clock = state.clock
        self._resources = state.resources
        self._facts = list(dict.fromkeys(rule.fact for rule in first_rules))  # some read the same
        count = len(state.graph.instructions)
        self._kinds: dict[tuple[Hashable, ...], int] = {}
        self._kind: list[int | None] = [None] * count
        self._peers: dict[tuple[Hashable, ...], _Peers] = {}
        self._peers_of: list[_Peers | None] = [None] * count
        self._version = [0] * count
        self._stalled: list[tuple[float, int, int]] = []
        """A heap of the ready times that are still to come, with node and version."""
        self._changed: dict[int, None] = {}
        """Nodes to be filed again."""
        self._aggressive = bool(state.config.aggressive_scheduling_policies)
        self._unlocks, self._cost = state.facts.unlocks, state.graph.cost
        self._creates_ready, self._depth = state.ready.creates_ready, state.direction.async_depth
        self._outlook = state.memory.outlook if state.config.minds_memory else None

    def touch(self, node: int) -> None:
        """Note that a node became ready, or that something that rules read of it changed."""
        self._changed[node] = None

    def remove(self, node: int) -> None:
        """Forget a node that is not ready any more."""
        self._version[node] += 1
        self._changed.pop(node, None)

    def leaders(self) -> Nodes:
        """The nodes of which one is the best, without those that may not be scheduled now."""
        clock, resources = self._clock, self._resources
        needs = resources.needs
        gap = None
        if self._aggressive and clock.becoming_ready:
            gap = clock.becoming_ready[0] - clock.now
        result: Nodes = []
        for level in self._levels():
            best = level.entries[0][3]
            if needs[best] and not resources.fits(best):
                continue
            if gap is None or len(level.costs) < 2:
                result.append(best)
            else:
                result += self._closest(level, gap)
        return result

    def blocked(self) -> Nodes:
        """Of each kind of node that may not be scheduled now for want of a resource, one."""
        resources = self._resources
        firsts = [level.entries[0][3] for level in self._levels()]
        return [node for node in firsts if resources.needs[node] and not resources.fits(node)]

    def _levels(self) -> list[_Level]:
        """The deepest level of each set of peers, whose best node is valid."""
        self._bring_up_to_date()
        version = self._version
        levels, gone = [], []
        for key, peers in self._peers.items():
            level = peers.deepest
            first = level.entries[0]
            if version[first[3]] == first[4]:
                levels.append(level)
            elif self._find_deepest(peers):
                levels.append(peers.deepest)
            else:
                gone.append(key)
        for key in gone:
            del self._peers[key]
        return levels

    def all_peers(self, leaders: Nodes) -> Nodes:
        """All nodes that the first rules see as equal to a leader, in the order of the list."""
        found: Nodes = []
        for peers in dict.fromkeys(self._peers_of[node] for node in leaders):
            if peers is not None:
                for level in peers.levels.values():
                    found += [entry[3] for entry in level.entries if self._is_valid(entry)]
        return sorted(found, key=self._state.ready.place.__getitem__)

    # -- filing ---------------------------------------------------------------------------------

    def _bring_up_to_date(self) -> None:
        now, stalled = self._clock.now, self._stalled
        while stalled and stalled[0][0] <= now:
            _, node, version = heappop(stalled)
            if version == self._version[node]:
                self._changed[node] = None
        for node in self._changed:
            self._file(node)
        self._changed.clear()

    def _file(self, node: int) -> None:
        state = self._state
        version = self._version[node] = self._version[node] + 1
        if node in state.graph.group:
            return  # it is scheduled with its group
        clock, stalled_until = self._clock, None
        if clock.ready_time[node] > clock.now:
            stalled_until = clock.ready_time[node]
            heappush(self._stalled, (stalled_until, node, version))
        kind = self._kind[node]
        if kind is None:
            kind = self._kind[node] = self._find_kind(node)
        key = (kind, stalled_until, self._outlook(node) if self._outlook is not None else None)
        peers = self._peers.get(key)
        if peers is None:
            fills_gaps = self._aggressive and not state.facts.releases_any[node]
            peers = self._peers[key] = _Peers(fills_gaps=fills_gaps)
        self._peers_of[node] = peers
        position = node if state.top_down else -node
        creates, depth = 0, 0.0
        if self._aggressive:
            creates, depth = self._creates_ready[node], self._depth[node]
        peers.add(
            (-self._unlocks[node], -creates, position, node, version), depth, self._cost[node]
        )

    def _find_kind(self, node: int) -> int:
        """The same number for nodes that the first rules see as equal, but for time and memory."""
        state = self._state
        facts = (state.resources.fit_fact(node), *[fact(state, node) for fact in self._facts])
        return self._kinds.setdefault(facts, len(self._kinds))

    # -- the best -------------------------------------------------------------------------------

    def _is_valid(self, entry: _Entry) -> bool:
        return self._version[entry[3]] == entry[4]

    def _clean(self, entries: list[_Entry]) -> bool:
        """Drop what is not valid from the top of a heap; whether something is left."""
        version = self._version
        while entries and version[entries[0][3]] != entries[0][4]:
            heappop(entries)
        return bool(entries)

    def _find_deepest(self, peers: _Peers) -> bool:
        """Drop the levels that nothing is left of; whether there are others."""
        while peers.depths:
            peers.deepest = peers.levels[-peers.depths[0]]
            if self._clean(peers.deepest.entries):
                return True
            del peers.levels[-heappop(peers.depths)]
        return False

    def _closest(self, level: _Level, gap: float) -> Nodes:
        """The best node of the cost closest to the gap; two where two costs are equally close."""
        costs, by_cost = level.costs, level.by_cost
        high = bisect_left(costs, gap)
        low = high - 1
        found: Nodes = []
        least = 0.0
        while low >= 0 or high < len(costs):
            is_low = high >= len(costs) or (low >= 0 and gap - costs[low] <= costs[high] - gap)
            cost = costs[low if is_low else high]
            if found and abs(gap - cost) > least:
                break
            entries = by_cost[cost]
            if self._clean(entries):
                found.append(entries[0][3])
                least = abs(gap - cost)
                high += not is_low
            else:
                del costs[low if is_low else high], by_cost[cost]
                high -= is_low
            low -= is_low
        return found
