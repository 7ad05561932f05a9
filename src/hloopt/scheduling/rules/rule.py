"""Rules of the chain that says which of the ready nodes is scheduled next."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

from hloopt.scheduling.state.state import SchedulingState

Nodes = list[int]


class Narrow(Protocol):
    def __call__(self, state: SchedulingState, nodes: Nodes) -> Nodes: ...


Fact = Callable[[SchedulingState, int], Hashable]
Applies = Callable[[SchedulingState], bool]


class Rule(NamedTuple):
    """One rule of the chain."""

    reason: str
    """XLA's word for it."""
    narrow: Narrow
    applies: Applies = lambda state: True
    """Whether it can ever have an opinion, by configuration and graph."""
    fact: Fact = lambda state, node: node
    """The part of a node that it reads, beside the node's ready time and outlook on memory: it sees
    nodes of equal facts as equal. By default it may read anything."""
    is_pairwise: Callable[[SchedulingState, Nodes], bool] | None = None
    """Whether candidates have to be compared in pairs."""

    @property
    def meaning(self) -> str:
        """The preference in words, for people: the first line that describes it."""
        return (self.narrow.__doc__ or "").partition("\n")[0].rstrip(".")


class TargetRules(NamedTuple):
    """Rules that a target puts into the chain beside those that all targets share."""

    early: tuple[Rule, ...] = ()
    """Rules where XLA asks for a target's early rule: after the hints, beside memory."""
    late: tuple[Rule, ...] = ()
    """Rules where XLA asks for a target's rule: after kUnlockDone. With any of them a choice is
    O(ready nodes): peers are kept in an order that they could contradict."""


def prefer_largest(reason: str, key: Callable[[SchedulingState, int], float]) -> Rule:
    """A rule that keeps the nodes with the largest key."""

    def narrow(state: SchedulingState, nodes: Nodes) -> Nodes:
        keys = [key(state, node) for node in nodes]
        largest = max(keys)
        return [node for node, value in zip(nodes, keys, strict=True) if value == largest]

    narrow.__doc__ = key.__doc__
    return Rule(reason, narrow)
