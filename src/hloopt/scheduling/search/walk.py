"""The walk from order to order of one computation: iterated local search."""

from __future__ import annotations

from math import exp
from random import Random

from hloopt.scheduling.search.bound import FreeWork, least_waiting
from hloopt.scheduling.search.order import Order
from hloopt.scheduling.search.problem import Problem
from hloopt.scheduling.search.proposals import Proposals

_MOST_KICKS = 3
_KICK_TRIES = 20
_DESCENT = 300
"""Steps of a descent, times 1/4 to 4."""
_HEAT = 0.003
"""The part of the least waiting so far by which the walk may go on from a worse order: with
probability 1/e, with less if that is worse still."""


class Walk:
    """Looks for an order of a computation that waits less.

    From where it stands the walk is kicked: a few moves are made whatever comes of them. Then for
    some steps no move is taken that waits longer. Where this leads is where the walk stands next,
    unless it is clearly worse than before.
    """

    def __init__(self, problem: Problem, seed: str) -> None:
        self.order = Order(problem)
        self.best = self.order.timeline.waiting
        """The waiting of the best order so far, by weight."""
        self.best_nodes = list(self.order.nodes)
        free_work = FreeWork(problem)
        waits = self.order.timeline.wait
        self.waited = sum(waits)
        """Ticks that the plain order waits."""
        self.least_ticks = least_waiting(problem, waits, free_work)
        """Ticks that any order waits at least."""
        self._least = self.least_ticks * min(problem.weight, default=0)
        self._exposed_before = self._exposed()
        self._rng = Random(seed)
        self._proposals = Proposals(self.order, free_work, self._rng)
        self._base, self._base_nodes = self.best, self.best_nodes
        """The present state of the walk: its waiting time and order."""
        self._left = _DESCENT
        """Steps before the end of the descent, which at first is from the plain order."""

    @property
    def is_finished(self) -> bool:
        """Whether no order can be better."""
        return self.best <= self._least

    def restart(self, nodes: list[int]) -> None:
        """Go on from an order, and take it for the best. O(nodes and their buffers)."""
        self._go_to(nodes)
        self.best, self.best_nodes = self.order.timeline.waiting, nodes
        self._base, self._base_nodes = self.best, nodes
        self._left = 0

    def step(self) -> None:
        """Try a move. O(nodes between its places, and their edges and buffers)."""
        if not self._left:
            self._settle()
            self._kick()
            self._left = int(_DESCENT * 2 ** self._rng.uniform(-2, 2))
        self._left -= 1
        move = self._proposals.next()
        order = self.order
        if move is None or order.gain(*move) > 0 or not order.is_allowed(*move):
            return
        order.replace(*move)
        if order.timeline.waiting < self.best and not self._is_worse_than_plain():
            self.best = order.timeline.waiting
            self.best_nodes = list(order.nodes)

    def _settle(self) -> None:
        """Stay at the present order, or go back to where the kick was."""
        waiting = self.order.timeline.waiting
        worse = waiting - self._base
        if worse <= 0 or self._rng.random() < exp(-worse / (_HEAT * self.best + 1)):
            self._base, self._base_nodes = waiting, list(self.order.nodes)
        else:
            self._go_to(self._base_nodes)

    def _kick(self) -> None:
        for _ in range(self._rng.randint(1, _MOST_KICKS)):
            for _ in range(_KICK_TRIES):
                move = self._proposals.next()
                if move is not None and self.order.gain(*move) and self.order.is_allowed(*move):
                    self.order.replace(*move)
                    break

    def _go_to(self, nodes: list[int]) -> None:
        if self.order.nodes != nodes:
            self.order.replace(0, list(nodes))

    def _is_worse_than_plain(self) -> bool:
        return sum(self.order.timeline.wait) > self.waited or self._exposed() > self._exposed_before

    def _exposed(self) -> int:
        pairs = zip(self.order.timeline.wait, self.order.problem.exposes, strict=True)
        return sum(wait for wait, exposes in pairs if exposes)
