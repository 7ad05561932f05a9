"""Time as the main stream and the operations beside it pass."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import inf

from hloopt.simulation.operations import Operation, Stream


class Clock:
    """Nobody slows anybody down; a stream that is full begins an operation when another ends."""

    def __init__(self) -> None:
        self.now = 0.0
        self._busy: dict[Stream, list[float]] = {}
        """By limited stream a heap of when each of its operations ends."""

    def run(self, work: float, demand: float = 0.0) -> None:
        """Let the main stream work. `demand`: the share of the memory's bandwidth it wants."""
        self.now += work

    def launch(self, operation: Operation, demand: float = 0.0) -> None:
        """Issue an operation. O(log of those in its stream)."""
        operation.issued = operation.begin = self.now
        limit = operation.stream.limit
        if limit is not None:
            busy = self._busy.setdefault(operation.stream, [])
            while busy and busy[0] <= self.now:
                heappop(busy)
            if len(busy) >= max(limit, 1):
                operation.begin = heappop(busy)
            heappush(busy, operation.begin + operation.latency)
        operation.finish = operation.begin + operation.latency

    def wait(self, operation: Operation) -> None:
        """Let the main stream do nothing until an operation is finished."""
        operation.needed = self.now
        self.now = max(self.now, operation.finish)


class SharedClock(Clock):
    """The clock of a run: what runs at the same time shares the bandwidth of the memory.

    Each party wants a share of it while it runs. Where they want more than there is, all get what
    they want up to one and the same share, so that it is used up; who gets less than wanted is
    that much slower. Time moves from one beginning or end to the next: O(parties) each.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rest: dict[Operation, float] = {}
        """The work left to operations in flight, in cycles at full speed."""
        self._demand: dict[Operation, float] = {}
        self._queues: dict[Stream, deque[Operation]] = {}
        self._running: dict[Stream, int] = {}

    def run(self, work: float, demand: float = 0.0) -> None:
        while work > 0:
            share = self._share(demand)
            rate = _rate(demand, share)
            passed = self._pass_time(share, work / rate)
            work = 0.0 if passed >= work / rate else work - passed * rate

    def launch(self, operation: Operation, demand: float = 0.0) -> None:
        operation.issued = self.now
        operation.finish = inf
        self._demand[operation] = demand
        limit = operation.stream.limit
        if limit is not None and self._running.get(operation.stream, 0) >= max(limit, 1):
            self._queues.setdefault(operation.stream, deque()).append(operation)
        else:
            self._begin(operation)

    def wait(self, operation: Operation) -> None:
        operation.needed = self.now
        while operation.finish > self.now:
            self._pass_time(self._share(0.0), inf)

    def _begin(self, operation: Operation) -> None:
        operation.begin = self.now
        self._rest[operation] = operation.latency
        self._running[operation.stream] = self._running.get(operation.stream, 0) + 1
        if operation.latency <= 0:
            self._end(operation)

    def _end(self, operation: Operation) -> None:
        operation.finish = self.now
        stream = operation.stream
        del self._rest[operation], self._demand[operation]
        self._running[stream] -= 1
        if self._queues.get(stream):
            self._begin(self._queues[stream].popleft())

    def _share(self, demand: float) -> float:
        """The most that anybody gets of the bandwidth, with a main stream that wants `demand`."""
        wanted = [demand, *(self._demand[operation] for operation in self._rest)]
        if sum(wanted) <= 1:
            return inf
        left = 1.0
        for count, least in zip(range(len(wanted), 0, -1), sorted(wanted), strict=True):
            if least * count > left:
                return left / count
            left -= least
        return inf  # pragma: no cover  # the sum is larger than 1

    def _pass_time(self, share: float, most: float) -> float:
        """Go on until an operation ends, but not longer than `most`; the time that went by."""
        ends = {
            operation: rest / _rate(self._demand[operation], share)
            for operation, rest in self._rest.items()
        }
        passed = min(most, min(ends.values(), default=inf))
        self.now += passed
        for operation, end in ends.items():
            if end <= passed:
                self._end(operation)
            else:
                self._rest[operation] -= passed * _rate(self._demand[operation], share)
        return passed


def _rate(demand: float, share: float) -> float:
    """The speed of something that wants `demand`, where all get at most `share`."""
    return share / demand if demand > share else 1.0
