"""Asynchronous copies that share the bandwidth of default memory."""

from __future__ import annotations

from math import inf

from hloopt.ir import Instruction

_DONE = 1e-9
"""The part of a copy that rounding may leave over."""


class CopyQueues:
    """Copies under way, in one queue per direction: each first in, first out.

    The first copy of a queue has all of the bandwidth, or half of it while both queues have work.
    All operations are O(1) per copy that ends, and per copy that stands before one waited for.
    """

    def __init__(self, rate: float) -> None:
        """`rate` is in bytes per second; 0: copies take no time."""
        self.reads: dict[Instruction, float] = {}
        """The bytes that are left, by the starts of copies out of default memory."""
        self.writes: dict[Instruction, float] = {}
        """Those of copies into default memory."""
        self._rate = rate

    def run(self, seconds: float) -> None:
        """Let copies go on for so many seconds of the whole bandwidth."""
        left = seconds * self._rate if self._rate else inf
        while left > 0 and (self.reads or self.writes):
            both = bool(self.reads and self.writes)
            nearest = min(_first(queue) for queue in (self.reads, self.writes) if queue)
            moved = min(nearest, left / 2 if both else left)
            for queue in (self.reads, self.writes):
                _move(queue, moved)
            left -= moved * 2 if both else moved

    def wait(self, start: Instruction) -> float:
        """Let copies go on until one is done; the seconds that takes. 0 for one already done."""
        queue, other = self.reads, self.writes
        if start in other:
            queue, other = other, queue
        moved = 0.0
        while start in queue:
            both = bool(other)
            size = min(_first(queue), _first(other)) if both else _first(queue)
            _move(queue, size)
            _move(other, size)
            moved += size * 2 if both else size
        return moved / self._rate if self._rate else 0


def _first(queue: dict[Instruction, float]) -> float:
    return next(iter(queue.values()))


def _move(queue: dict[Instruction, float], size: float) -> None:
    """Move so many bytes of the first copy of a queue, which leaves it once all are."""
    start = next(iter(queue), None)
    if start is not None:
        left = queue[start] - size
        if left > _DONE * size:
            queue[start] = left
        else:
            del queue[start]
