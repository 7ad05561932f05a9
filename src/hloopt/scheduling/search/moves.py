"""Moves: a node goes far in one direction and takes along only what has to go with it."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from hloopt.scheduling.search.order import Order

_NO_NEED = 1 << 62
_LEFT_BEHIND = 0.1
"""The probability that a node is not passed though it could be."""


class Move(NamedTuple):
    """Other nodes for the places from `at` on."""

    at: int
    nodes: list[int]


class _Shift(NamedTuple):
    """The nodes that a node passes on its way and those it takes along, both as they are met."""

    passed: list[int]
    taken: list[int]


class Mover:
    """Makes moves of an order. Each keeps the dependencies.

    What depends on a node that goes towards the end goes with it, and what a node depends on that
    goes towards the beginning; all else between its old and its new place changes sides with it
    and keeps its order. Each move is O(nodes between the two places and their edges), and None
    where it would change nothing.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self._mark = [0] * len(order.nodes)
        self._tick = 0

    def shift(
        self,
        node: int,
        target: int,
        *,
        keeps_claims: bool = False,
        need: int = _NO_NEED,
        rng: Random | None = None,
    ) -> Move | None:
        """Let a node go past what stands up to position `target`.

        It stops as soon as it passed `need` ticks of work. With `keeps_claims` nothing that
        resources matter to overtakes another such node; with `rng` some work is not passed, by
        chance.
        """
        shift = self._shift(node, target, keeps_claims=keeps_claims, need=need, rng=rng)
        return self._move(node, target, shift.passed + shift.taken) if shift.passed else None

    def shift_pair(self, node: int, target: int, need: int) -> Move | None:
        """Let an operation go past what stands up to position `target`.

        `node` is its start towards the end, its done towards the beginning. It stays apart from
        the other by `need` ticks of the work that it would pass, if no claim is in between.
        """
        passed, taken = self._shift(node, target)
        claims, cost = self.order.problem.claims, self.order.problem.cost
        stop = len(passed)
        while stop and need > 0 and claims[passed[stop - 1]] is None:
            stop -= 1
            need -= cost[passed[stop]]
        if not stop:
            return None
        return self._move(node, target, [*passed[:stop], node, *passed[stop:], *taken[1:]])

    def bring_in(self, node: int, gate: int) -> Move | None:
        """Let a node go right behind `gate`, a start before it, or right before a done after it;
        what it takes along goes beyond the gate."""
        target = self.order.position[gate]
        passed, taken = self._shift(node, target)
        if not passed or passed[-1] != gate:
            return None
        return self._move(node, target, [*passed[:-1], node, gate, *taken[1:]])

    def _move(self, node: int, target: int, met: list[int]) -> Move:
        """The move that leaves nodes in this order, as seen from where `node` was."""
        at = self.order.position[node]
        if target > at:
            return Move(at, met)
        met.reverse()
        return Move(at + 1 - len(met), met)

    def _shift(
        self,
        node: int,
        target: int,
        *,
        keeps_claims: bool = False,
        need: int = _NO_NEED,
        rng: Random | None = None,
    ) -> _Shift:
        problem, order = self.order.problem, self.order.nodes
        claims, cost = problem.claims, problem.cost
        at = self.order.position[node]
        step = 1 if target > at else -1
        bound = problem.successors if target > at else problem.predecessors
        self._tick += 1
        tick, mark = self._tick, self._mark
        mark[node] = tick
        passed: list[int] = []
        taken: list[int] = []
        taken_at_last_pass = 0
        holds_claims = False
        for position in range(at, target + step, step):
            other = order[position]
            is_claim = keeps_claims and claims[other] is not None
            if (
                mark[other] == tick
                or (holds_claims and is_claim)
                or (rng is not None and rng.random() < _LEFT_BEHIND)
            ):
                taken.append(other)
                for follower in bound[other]:
                    mark[follower] = tick
                holds_claims = holds_claims or is_claim
                continue
            passed.append(other)
            taken_at_last_pass = len(taken)
            need -= cost[other]
            if need <= 0:
                break
        return _Shift(passed, taken[:taken_at_last_pass])
