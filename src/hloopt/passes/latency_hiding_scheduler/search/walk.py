"""The walk from order to order of one computation: simulated annealing."""

from __future__ import annotations

from math import exp
from random import Random

from hloopt.passes.latency_hiding_scheduler.search.bound import least_waiting
from hloopt.passes.latency_hiding_scheduler.search.order import Order
from hloopt.passes.latency_hiding_scheduler.search.problem import Problem
from hloopt.passes.latency_hiding_scheduler.search.proposals import Proposals

_HOT, _COLD = 0.1, 1e-4
"""The temperature at the begin and the end of a round, as a part of the least waiting so far."""


class Walk:
    """Looks for an order of a computation that waits less.

    Each round begins at the best order so far and cools down: at first orders that wait longer
    are often taken, too, in the end only better ones.
    """

    def __init__(self, problem: Problem, seed: str) -> None:
        self.order = Order(problem)
        self.best = self.order.timeline.waiting
        """What the best order so far waits, by weight."""
        self.best_nodes = list(self.order.nodes)
        self.steps = 0
        waits = self.order.timeline.wait
        self.least_ticks = least_waiting(problem, waits)
        """What any order waits at least."""
        self._least = self.least_ticks * min(problem.weight, default=0)
        self.waited = sum(waits)
        """Ticks that the plain order waits."""
        self._most_exposed = self._exposed()
        self._rng = Random(seed)
        self._proposals = Proposals(self.order, self._rng)
        self._heat = self._cooling = 1.0

    @property
    def is_finished(self) -> bool:
        """Whether no order can be better."""
        return self.best <= self._least

    def restart(self, nodes: list[int]) -> None:
        """Go on from an order, and take it for the best. O(nodes and their buffers)."""
        if self.order.nodes != nodes:
            self.order.replace(0, list(nodes))
        self.best, self.best_nodes = self.order.timeline.waiting, nodes

    def heat_up(self, steps: int) -> None:
        """Begin a round of so many steps."""
        self._heat = self.best * _HOT
        self._cooling = (_COLD / _HOT) ** (1 / steps)

    def step(self) -> None:
        """Try a move. O(nodes between its places, and their edges and buffers)."""
        self.steps += 1
        self._heat *= self._cooling
        move = self._proposals.next()
        if move is None:
            return
        order = self.order
        gain = order.gain(move.at, move.nodes)
        if gain > 0 and self._rng.random() >= exp(-gain / self._heat):
            return
        if order.is_allowed(move.at, move.nodes):
            order.replace(move.at, move.nodes)
            if order.timeline.waiting < self.best and not self._is_worse_than_plain():
                self.best = order.timeline.waiting
                self.best_nodes = list(order.nodes)

    def _is_worse_than_plain(self) -> bool:
        waits = self.order.timeline.wait
        return sum(waits) > self.waited or self._exposed() > self._most_exposed

    def _exposed(self) -> int:
        pairs = zip(self.order.timeline.wait, self.order.problem.exposes, strict=True)
        return sum(wait for wait, exposes in pairs if exposes)
