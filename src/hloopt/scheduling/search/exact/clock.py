"""The times of nodes in an order, as variables of the CP-SAT solver."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from hloopt.scheduling.search.exact.places import Places
from hloopt.scheduling.search.exact.relations import is_timed
from hloopt.scheduling.search.problem import NO_PAIR, Problem

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar, LinearExpr, LinearExprT


class Times(NamedTuple):
    """The times of an order, in ticks."""

    end: list[int]
    """By node when it ends."""
    wait: list[int]
    """By pair how long its done waits."""

    @classmethod
    def of(cls, problem: Problem, order: Sequence[int]) -> Times:
        """O(nodes)."""
        end, wait = [0] * len(problem.cost), [0] * len(problem.starts)
        time = 0
        for node in order:
            time += problem.cost[node]
            pair = problem.pair_of_done[node]
            if pair != NO_PAIR:
                ready = end[problem.starts[pair]] + problem.latency[pair]
                wait[pair] = max(0, ready - time)
                time += wait[pair]
            end[node] = time
        return cls(end, wait)

    def exposed(self, problem: Problem) -> int:
        """Ticks that dones wait for collectives."""
        return sum(w for w, exposes in zip(self.wait, problem.exposes, strict=True) if exposes)


class Clock:
    """Begin and end of what takes time and of starts and dones, and the waiting of dones.

    Nodes may begin later than they could: an order has no such gaps, so it takes no longer than the
    clock says, and the shortest takes just as long. With `waits` the clock is exact, so that what
    is waited for collectives is known; that proves less in the same time.
    """

    def __init__(
        self,
        model: CpModel,
        places: Places,
        order: Sequence[int],
        horizon: tuple[int, int],
        *,
        waits: bool,
    ) -> None:
        """No order takes less than the first of `horizon`, in ticks; those that take longer than
        the second are of no interest. `order` is a hint that does not. O(nodes³)."""
        self._model = model
        self._places = places
        problem = self._problem = places.relations.problem
        self._known = Times.of(problem, order)
        self.unit = gcd(*problem.cost, *problem.latency) or 1
        """Ticks."""
        self.latency = [ticks // self.unit for ticks in problem.latency]
        self._cost = [ticks // self.unit for ticks in problem.cost]
        least, most = horizon
        self.horizon = most // self.unit
        known = max(self._known.end, default=0) // self.unit
        self.total = places.variable(-(-least // self.unit), self.horizon, known)
        """The time of the order."""
        self._begin: dict[int, IntVar] = {}
        self.end: dict[int, LinearExpr] = {}
        self._wait: dict[int, IntVar] = {}
        """By pair; none where gaps will do."""
        for pair, ticks in enumerate(self._known.wait if waits else ()):
            self._wait[pair] = places.variable(0, self.latency[pair], ticks // self.unit)
        self._add_nodes()
        self._add_order()
        self._add_operations()

    def exposed(self) -> LinearExprT:
        """The waiting for collectives, in units, of a clock with `waits`."""
        exposes = self._problem.exposes
        return sum(wait for pair, wait in self._wait.items() if exposes[pair])

    def _add_nodes(self) -> None:
        problem, model = self._problem, self._model
        intervals = []
        for node in self._places.relations.placed:
            if not is_timed(problem, node):
                continue
            cost, hint = self._cost[node], self._known.end[node] // self.unit
            pair = problem.pair_of_done[node]
            if pair in self._wait:
                end = self.end[node] = self._places.variable(0, self.horizon, hint)
                hint -= self._known.wait[pair] // self.unit
                begin = self._begin[node] = self._places.variable(0, self.horizon, hint - cost)
                intervals.append(model.new_interval_var(begin, cost + self._wait[pair], end, ""))
            else:
                begin = self._begin[node] = self._places.variable(0, self.horizon, hint - cost)
                self.end[node] = begin + cost
                if cost:
                    intervals.append(model.new_fixed_size_interval_var(begin, cost, ""))
            model.add(self.end[node] <= self.total)
        model.add_no_overlap(intervals)
        if self._wait:
            model.add(self.total == sum(self._cost) + sum(self._wait.values()))

    def _add_order(self) -> None:
        places, model = self._places, self._model
        for node in self._begin:
            earlier = [n for n in self._begin if places.relations.precedes(n, node)]
            for other in places.relations.last_of(earlier):
                model.add(self._begin[node] >= self.end[other])
        for node, other in places.undecided:
            if node in self._begin and other in self._begin:
                first = places.before(node, other)
                model.add(self._begin[other] >= self.end[node]).only_enforce_if(first)
                model.add(self._begin[node] >= self.end[other]).only_enforce_if(~first)

    def _add_operations(self) -> None:
        """Let dones wait for their operations."""
        problem = self._problem
        for pair, (start, done) in enumerate(zip(problem.starts, problem.dones, strict=True)):
            ready = self.end[start] + self.latency[pair]
            self._model.add(self.end[done] >= ready)
            if self._wait:
                rest = ready - self._begin[done] - self._cost[done]
                self._model.add_max_equality(self._wait[pair], [0, rest])
