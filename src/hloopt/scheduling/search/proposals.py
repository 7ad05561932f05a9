"""The move to try next: mostly one that gives a waiting operation more to hide behind."""

from __future__ import annotations

from itertools import accumulate
from random import Random

from hloopt.scheduling.search.bound import FreeWork
from hloopt.scheduling.search.moves import Move, Mover
from hloopt.scheduling.search.order import Order

_WANDER, _WIDEN, _FILL = 0.1, 0.4, 0.75
"""Up to which random number what is tried; above, an operation goes elsewhere."""
_ANY_PAIR = 0.1
_KEEPS_CLAIMS = 0.7
_IS_PICKY = 0.3
_SHARES_OF_WAIT = (0.3, 1.0, 1.0, 1.5)
_SHARES_OF_LATENCY = (0.0, 0.3, 0.6, 1.0, 1.0, 1.0)


class Proposals:
    """Random moves of an order."""

    def __init__(self, order: Order, free_work: FreeWork, rng: Random) -> None:
        problem = order.problem
        self._order = order
        self._rng = rng
        self._mover = Mover(order)
        self._pairs = range(len(problem.starts))
        self._nodes = range(len(problem.cost))
        self._free_work = free_work
        self._cost_up_to: dict[int, list[int]] = {}
        """By pair the sums of the costs of its free work."""

    def next(self) -> Move | None:
        """A move to try; None if this time nothing came of it."""
        rng = self._rng
        choice = rng.random()
        waits = self._order.timeline.wait
        waiting = [pair for pair in self._pairs if waits[pair]]
        if not waiting or choice < _WANDER:
            return self._wander()
        if rng.random() < _ANY_PAIR:
            pair = rng.choice(self._pairs)
        else:
            pair = rng.choices(waiting, [waits[pair] for pair in waiting])[0]
        if choice < _WIDEN:
            return self._widen(pair)
        if choice < _FILL:
            return self._fill(pair)
        return self._relocate(pair)

    def _wander(self) -> Move | None:
        """Any node goes anywhere."""
        node = self._rng.randrange(len(self._nodes))
        sign = self._rng.choice((-1, 1))
        target = self._within(self._order.position[node] + sign * self._distance())
        return self._mover.shift(node, target, keeps_claims=self._rng.random() < _KEEPS_CLAIMS)

    def _widen(self, pair: int) -> Move | None:
        """The done goes behind work that follows it, or the start before work ahead of it."""
        problem, rng = self._order.problem, self._rng
        is_done = rng.random() < 0.5
        return self._mover.shift(
            problem.dones[pair] if is_done else problem.starts[pair],
            len(self._nodes) - 1 if is_done else 0,
            keeps_claims=rng.random() < _KEEPS_CLAIMS,
            need=int(self._order.timeline.wait[pair] * rng.choice(_SHARES_OF_WAIT)),
            rng=rng if rng.random() < _IS_PICKY else None,
        )

    def _fill(self, pair: int) -> Move | None:
        """Work from elsewhere comes between start and done: by its cost, or because it is near."""
        problem, rng, position = self._order.problem, self._rng, self._order.position
        start, done = problem.starts[pair], problem.dones[pair]
        node: int | None
        if rng.random() < 0.5:
            node = self._by_cost(pair)
        elif rng.random() < 0.5:
            node = self._order.nodes[self._within(position[done] + self._distance())]
        else:
            node = self._order.nodes[self._within(position[start] - self._distance())]
        if node is None or position[start] <= position[node] <= position[done]:
            return None
        is_behind = position[node] > position[done]
        if rng.random() < 0.5:
            return self._mover.bring_in(node, start if is_behind else done)
        return self._mover.shift(
            node,
            position[done] if is_behind else position[start],
            keeps_claims=rng.random() < _KEEPS_CLAIMS,
        )

    def _by_cost(self, pair: int) -> int | None:
        """Work that can hide a pair's operation, chosen by its cost; None if there is none."""
        work = self._free_work[pair]
        if not work:
            return None
        up_to = self._cost_up_to.get(pair)
        if up_to is None:
            cost = self._order.problem.cost
            up_to = self._cost_up_to[pair] = list(accumulate(cost[node] for node in work))
        return self._rng.choices(work, cum_weights=up_to)[0]

    def _relocate(self, pair: int) -> Move | None:
        """The operation goes before or behind others, and hides behind work there."""
        problem, rng, position = self._order.problem, self._rng, self._order.position
        start, done = problem.starts[pair], problem.dones[pair]
        need = int(problem.latency[pair] * rng.choice(_SHARES_OF_LATENCY))
        if rng.random() < 0.5:
            target = self._within(position[done] + self._distance())
            return self._mover.shift_pair(start, target, need)
        target = self._within(position[start] - self._distance())
        return self._mover.shift_pair(done, target, need)

    def _distance(self) -> int:
        """Near places are as likely as far ones, by order of magnitude."""
        return int(len(self._nodes) ** self._rng.random()) + 1

    def _within(self, position: int) -> int:
        return min(max(position, 0), len(self._nodes) - 1)
