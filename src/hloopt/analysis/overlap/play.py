"""Runs of a computation with one stream of computation and one of collectives."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product
from math import inf
from typing import NamedTuple

from hloopt.analysis.overlap.times import Times
from hloopt.analysis.overlap.traffic import Transfer
from hloopt.ir.backend_config import is_sync
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.ordering import dependencies, stable_order


class Busy:
    """When a stream is busy: spans of time, one after the other."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._begins: list[float] = []
        self._before: list[float] = []
        """Busy seconds before each span."""

    def add(self, begin: float, seconds: float) -> None:
        """Add a span that begins where the last one ends, or later."""
        self._begins.append(begin)
        self._before.append(self.seconds)
        self.seconds += seconds

    def between(self, begin: float, end: float) -> float:
        """Busy seconds between two times. O(log(spans))."""
        return self._until(end) - self._until(begin)

    def _until(self, time: float) -> float:
        number = bisect_right(self._begins, time) - 1
        if number < 0:
            return 0.0
        until = self._before[number + 1] if number + 1 < len(self._before) else self.seconds
        return min(self._before[number] + time - self._begins[number], until)


class Played(NamedTuple):
    """A run of a computation."""

    seconds: float
    busy: Busy
    """When it computes."""
    spans: dict[Instruction, tuple[float, float]]
    """When each collective, by its start, is on its way."""


Collectives = Mapping[Instruction, Transfer]
"""By their start."""


def play_schedule(computation: Computation, collectives: Collectives, times: Times) -> Played:
    """A run in the order of the instructions. O(instructions)."""
    dones = {transfer.done: start for start, transfer in collectives.items()}
    busy = Busy()
    spans: dict[Instruction, tuple[float, float]] = {}
    now = link_free = 0.0
    for instruction in computation.instructions:
        if transfer := collectives.get(instruction):
            begin = max(now, link_free)
            link_free = begin + transfer.seconds
            spans[instruction] = (begin, link_free)
            if not transfer.is_asynchronous or is_sync(instruction):
                now = link_free
        elif instruction in dones:
            now = max(now, spans[dones[instruction]][1])
        elif seconds := times.of(instruction):
            busy.add(now, seconds)
            now += seconds
    return Played(now, busy, spans)


def play_what_is_ready(computation: Computation, collectives: Collectives, times: Times) -> Played:
    """The shortest of eight runs that take of what is ready what is the most urgent.

    On each stream that is what has the longest way to the end, or what has the shortest way to a
    collective; and runs go forward from the beginning, or backward from the end. Which is best
    differs from program to program. O(edges + instructions · log(instructions)).
    """
    order = stable_order(computation)
    seconds = [collectives[i].seconds if i in collectives else times.of(i) for i in order]
    numbers = {instruction: number for number, instruction in enumerate(order)}
    before = [sorted({numbers[earlier] for earlier in dependencies(i)}) for i in order]
    forward = _Graph(seconds, [i in collectives for i in order], before)
    best = min(
        (run for graph in (forward, forward.backward()) for run in _runs(graph)),
        key=lambda run: run.seconds,
    )
    return best.played(order)


class _Graph:
    """Instructions as numbers, in a topological order."""

    def __init__(
        self,
        seconds: Sequence[float],
        is_collective: Sequence[bool],
        before: Sequence[Sequence[int]],
        *,
        is_backward: bool = False,
    ) -> None:
        """O(edges)."""
        self.seconds = seconds
        self.is_collective = is_collective
        self.before = before
        self.is_backward = is_backward
        self.successors: list[list[int]] = [[] for _ in before]
        for number, earlier_ones in enumerate(before):
            for earlier in earlier_ones:
                self.successors[earlier].append(number)

    def backward(self) -> _Graph:
        """The same with time going backward: the last is number 0. O(edges)."""
        last = len(self.before) - 1
        return _Graph(
            self.seconds[::-1],
            self.is_collective[::-1],
            [[last - number for number in later] for later in reversed(self.successors)],
            is_backward=True,
        )

    def ways_to_end(self) -> list[float]:
        """Seconds from the start of each to the end, the longest way; the most is urgent."""
        ways = list(self.seconds)
        for number in range(len(ways) - 1, -1, -1):
            for earlier in self.before[number]:
                ways[earlier] = max(ways[earlier], self.seconds[earlier] + ways[number])
        return ways

    def ways_to_collectives(self) -> list[float]:
        """Minus the seconds from the end of each to the next collective, the shortest way."""
        ways = [-inf] * len(self.before)
        for number in range(len(ways) - 1, -1, -1):
            way = 0.0 if self.is_collective[number] else ways[number] - self.seconds[number]
            for earlier in self.before[number]:
                ways[earlier] = max(ways[earlier], way)
        return ways


@dataclass(frozen=True, slots=True)
class _Run:
    """When each instruction that takes time, or is a collective, begins."""

    graph: _Graph
    seconds: float
    begins: Mapping[int, float]

    def played(self, order: Sequence[Instruction]) -> Played:
        """The run of these instructions, with time going forward. O(n · log(n))."""
        graph, begins = self.graph, self.begins
        if graph.is_backward:
            last = len(order) - 1
            begins = {
                last - number: self.seconds - begin - graph.seconds[number]
                for number, begin in begins.items()
            }
            graph = graph.backward()
        busy = Busy()
        spans: dict[Instruction, tuple[float, float]] = {}
        for number, begin in sorted(begins.items(), key=lambda item: (item[1], item[0])):
            if graph.is_collective[number]:
                spans[order[number]] = (begin, begin + graph.seconds[number])
            else:
                busy.add(begin, graph.seconds[number])
        return Played(self.seconds, busy, spans)


def _runs(graph: _Graph) -> Iterator[_Run]:
    """A run for each choice of what is urgent on the two streams."""
    urgencies = graph.ways_to_end(), graph.ways_to_collectives()
    for choice in product(urgencies, repeat=2):
        ready = _Ready(graph, choice)
        begins: dict[int, float] = {}
        running: list[tuple[float, int]] = []
        is_idle = [True, True]
        now = 0.0
        while True:
            for is_collective in (False, True):
                number = ready.take(is_collective) if is_idle[is_collective] else None
                if number is not None:
                    is_idle[is_collective] = False
                    begins[number] = now
                    heappush(running, (now + graph.seconds[number], number))
            if not running:
                break
            now, number = heappop(running)
            is_idle[graph.is_collective[number]] = True
            ready.finish(number)
        yield _Run(graph, now, begins)


class _Ready:
    """What can run next, by stream.

    What takes no time, collectives aside, is finished as soon as it is ready.
    """

    def __init__(self, graph: _Graph, urgencies: Sequence[Sequence[float]]) -> None:
        self._graph = graph
        self._urgencies = urgencies  # for computation, for collectives
        self._waits = [len(before) for before in graph.before]
        self._queues: dict[bool, list[tuple[float, int]]] = {False: [], True: []}
        for number, before in enumerate(graph.before):
            if not before and not self._has_to_run(number):
                self.finish(number)

    def take(self, is_collective: bool) -> int | None:
        """The most urgent that is ready on a stream, which it leaves. O(log(ready))."""
        queue = self._queues[is_collective]
        return heappop(queue)[1] if queue else None

    def finish(self, number: int) -> None:
        """Let go what waits for an instruction alone. O(successors · log(ready))."""
        finished = [number]
        while finished:
            for successor in self._graph.successors[finished.pop()]:
                self._waits[successor] -= 1
                if not self._waits[successor] and not self._has_to_run(successor):
                    finished.append(successor)

    def _has_to_run(self, number: int) -> bool:
        """Put something ready in its queue; False where it takes no time."""
        is_collective = self._graph.is_collective[number]
        if not is_collective and not self._graph.seconds[number]:
            return False
        heappush(self._queues[is_collective], (-self._urgencies[is_collective][number], number))
        return True
