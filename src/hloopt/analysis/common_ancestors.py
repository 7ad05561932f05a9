"""Nearest common ancestors: the nodes at which the paths from several nodes first meet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from hloopt.analysis.call_graph import CallGraph
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction

Node = TypeVar("Node", bound=Hashable)


def nearest_common_ancestor_instructions(starts: Iterable[Instruction]) -> list[Instruction]:
    """The instructions at which the paths from `starts` to the end of their computation first meet.

    Ways lead over users and control successors. Several instructions if they are as near; `starts`
    alone if some of them are; none if the ways never meet. O(starts * edges).
    """
    return _first_meeting(starts, lambda i: (*i.users, *i.control_successors))


def nearest_common_ancestor_computations(
    graph: CallGraph, starts: Iterable[Computation]
) -> list[Computation]:
    """The computations at which the paths from `starts` up through their callers first meet.

    As `nearest_common_ancestor_instructions`. O(starts * calls).
    """
    nodes = _first_meeting((graph.nodes[c] for c in starts), lambda node: node.callers)
    return [node.computation for node in nodes]


def _first_meeting(starts: Iterable[Node], onward: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """The nodes that all starts have reached after as few steps as possible, in order of
    arrival."""
    origins = dict.fromkeys(starts)
    reached = [{origin} for origin in origins]
    frontiers = [[origin] for origin in origins]
    arrivals = dict.fromkeys(origins, 1)
    meeting = list(origins) if len(origins) == 1 else []
    while not meeting and any(frontiers):
        for number, frontier in enumerate(frontiers):
            frontiers[number] = []
            for node in frontier:
                for following in onward(node):
                    if following in reached[number]:
                        continue
                    reached[number].add(following)
                    frontiers[number].append(following)
                    arrivals[following] = arrivals.get(following, 0) + 1
                    if arrivals[following] == len(origins):
                        meeting.append(following)
    return [node for node in meeting if node in origins] or meeting
