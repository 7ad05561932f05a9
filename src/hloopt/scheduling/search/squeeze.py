"""An order that needs less memory at its peak, for plain orders that need more than there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hloopt.scheduling.search.order import Order

_MOST_STEPS = 200
_MOST_TOGETHER = 16
"""Nodes that are moved at a time."""
_MOST_TRIED = 24
"""Moves that are tried for a peak, those of most bytes first."""


class _Move(NamedTuple):
    size: int
    """The bytes that are no longer alive at the peak; others may be alive there instead."""
    at: int
    nodes: list[int]
    """The nodes from position `at` on."""


def squeeze(order: Order, target: int) -> bool:
    """Move nodes of an order until its peak is `target` at most, or no single move helps.

    What makes buffers before the peak that are used behind it moves behind it, and what ends
    buffers moves before it, each with what has to go along. Of the moves that help, the one that
    adds least waiting is made. Returns whether the peak is lower; the order stays if it is not.
    O(nodes) a move that is tried.
    """
    memory = order.problem.memory
    first, _ = order.highest()
    least, best = first, list(order.nodes)
    for _ in range(_MOST_STEPS):
        peak, place = order.highest()
        if peak < least:
            least, best = peak, list(order.nodes)
        if peak <= target:
            break
        memory.limit = peak
        moves = sorted(_moves(order, place), key=lambda move: -move.size)[:_MOST_TRIED]
        allowed = [move for move in moves if order.is_allowed(move.at, move.nodes)]
        allowed.sort(key=lambda move: (order.gain(move.at, move.nodes), -move.size))
        if not any(_is_lower(order, move, peak, place) for move in allowed):
            break
    if order.nodes != best:  # moves away from one of several equal peaks did not lower it
        order.replace(0, best)
    return least < first


def _is_lower(order: Order, move: _Move, peak: int, place: int) -> bool:
    """Make a move; undo it unless less is alive at `place`, and nowhere more than at the peak."""
    before = order.nodes[move.at : move.at + len(move.nodes)]
    node = order.nodes[place]
    order.replace(move.at, move.nodes)
    if order.needed(order.position[node]) < peak and order.highest()[0] <= peak:
        return True
    order.replace(move.at, before)
    return False


def _moves(order: Order, place: int) -> Iterator[_Move]:
    """Moves that take buffers away from the node at a place."""
    problem, position = order.problem, order.position
    memory = problem.memory
    for node in order.nodes[:place]:
        size = sum(memory.size[b] for b in memory.begins[node] if order.last_use(b) > place)
        if size:
            along = _closure(node, problem.successors, position, range(place + 1))
            if along is not None and order.nodes[place] not in along:
                users = (u for n in along for u in problem.successors[n] if u not in along)
                end = min((position[user] for user in users), default=len(order.nodes))
                begin = position[node]
                kept = [n for n in order.nodes[begin:end] if n not in along]
                yield _Move(size, begin, [*kept, *_in_order(along, position)])
    for node in order.nodes[place + 1 :]:
        here = position[node]
        size = sum(memory.size[b] for b in memory.uses[node] if order.last_use(b) == here)
        if size:
            along = _closure(node, problem.predecessors, position, range(place, here + 1))
            if along is not None and order.nodes[place] not in along:
                kept = [n for n in order.nodes[place : here + 1] if n not in along]
                yield _Move(size, place, [*_in_order(along, position), *kept])


def _closure(
    node: int, neighbours: Sequence[Sequence[int]], position: Sequence[int], places: range
) -> set[int] | None:
    """A node with what it is tied to within a range of places; None where that is much."""
    found = {node}
    waiting = [node]
    while waiting:
        for other in neighbours[waiting.pop()]:
            if other not in found and position[other] in places:
                found.add(other)
                waiting.append(other)
        if len(found) > _MOST_TOGETHER:
            return None
    return found


def _in_order(nodes: Iterable[int], position: Sequence[int]) -> list[int]:
    return sorted(nodes, key=position.__getitem__)
