"""The time an order waits, kept up to date while parts of it change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from hloopt.scheduling.search.problem import NO_PAIR, Problem

Event = tuple[int, int]
"""A start or done, and the work up to its end in ticks."""


class Timeline:
    """The starts and dones of an order by place, and when each is reached.

    Work counts from the beginning of the order without waiting; the time of an event is the work
    up to its end and all waiting before it.
    """

    def __init__(self, problem: Problem, events: list[Event]) -> None:
        self._start_pair = problem.pair_of_start
        self._done_pair = problem.pair_of_done
        self._latency = problem.latency
        self._weight = problem.weight
        pairs = len(problem.starts)
        self.nodes = [node for node, _ in events]
        self.work = [work for _, work in events]
        self.wait = [0] * pairs
        """Ticks that each pair's done waits."""
        self.waiting = 0
        """All waiting, by weight."""
        self._started = [0] * pairs
        """The time at which each pair's operation begins."""
        self._late = [0] * (len(events) + 1)
        """All waiting before each event."""
        self._open = [0] * (len(events) + 1)
        """The number of operations that are under way before each event."""
        self.replace(0, events)

    def index(self, position: int, positions: Sequence[int]) -> int:
        """The first event at or after a position. O(log events)."""
        return bisect_left(self.nodes, position, key=positions.__getitem__)

    def gain(self, low: int, events: list[Event]) -> int:
        """By how much the waiting changes if these are the events from `low` on.

        They are those that are there, in another order or at other times. O(events up to where
        nothing is under way).
        """
        return self._run(low, events, {}, {})

    def replace(self, low: int, events: list[Event]) -> None:
        """Let these be the events from `low` on."""
        high = low + len(events)
        self.nodes[low:high] = [node for node, _ in events]
        self.work[low:high] = [work for _, work in events]
        started: dict[int, int] = {}
        waits: dict[int, int] = {}
        self.waiting += self._run(low, events, started, waits)
        for pair, time in waits.items():
            self.wait[pair] = time
        late, is_open = self._late[low], self._open[low]
        for index in range(low, len(self.nodes)):
            self._late[index], self._open[index] = late, is_open
            pair = self._start_pair[self.nodes[index]]
            if pair != NO_PAIR:
                self._started[pair] = self.work[index] + late
                is_open += 1
                continue
            late += self.wait[self._done_pair[self.nodes[index]]]
            is_open -= 1
        self._late[-1], self._open[-1] = late, is_open

    def _run(
        self, low: int, events: list[Event], started: dict[int, int], waits: dict[int, int]
    ) -> int:
        """The change of the waiting; fills in when operations start and how long dones wait."""
        high = low + len(events)
        late, is_open = self._late[low], self._open[low]
        change = 0
        start_pair, done_pair, weight = self._start_pair, self._done_pair, self._weight
        index = low
        count = len(self.nodes)
        while index < count and (is_open or index < high):
            if index < high:
                node, work = events[index - low]
            else:
                node, work = self.nodes[index], self.work[index]
            index += 1
            pair = start_pair[node]
            if pair != NO_PAIR:
                started[pair] = work + late
                is_open += 1
                continue
            pair = done_pair[node]
            is_open -= 1
            begin = started.get(pair)
            if begin is None:
                begin = self._started[pair]
            wait = self._latency[pair] - (work + late - begin)
            if wait < 0:
                wait = 0
            late += wait
            waits[pair] = wait
            change += weight[pair] * (wait - self.wait[pair])
        return change
