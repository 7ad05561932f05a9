"""The state of an assignment: addresses, copies, the bandwidth they use, required places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hloopt.memory_space.heap.chunks import Chunk, ChunkHeap, Part, Reservation
from hloopt.memory_space.ledger.copy_ordering import CopyOrdering
from hloopt.memory_space.ledger.copy_resource import CopyResource
from hloopt.memory_space.ledger.overlaps import OverlapCount
from hloopt.memory_space.ledger.requirements import Requirements


@dataclass(slots=True)
class Direction:
    """The copies into alternate memory, or those out of it."""

    resource: CopyResource
    outstanding: OverlapCount

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Direction:
        return cls(CopyResource(seconds), OverlapCount(len(seconds)))


@dataclass(slots=True)
class Ledger:
    """The state of an assignment. What a buffer takes is pending until it is kept or undone."""

    heap: ChunkHeap
    prefetches: Direction
    evictions: Direction
    ordering: CopyOrdering = field(default_factory=CopyOrdering)
    requirements: Requirements = field(default_factory=Requirements)
    _undo: list[Callable[[], object]] = field(default_factory=list)
    _copies: int = 0

    @classmethod
    def of(cls, alignment: int, seconds: Sequence[float]) -> Ledger:
        """An empty ledger; `seconds` are those that each time gives to copies."""
        return cls(ChunkHeap(alignment), Direction.of(seconds), Direction.of(seconds))

    def take(
        self, chunk: Chunk, start: int, end: int, part: Part | None = None, *, copied: bool = False
    ) -> Reservation:
        """Take a chunk as `ChunkHeap.take` does."""
        reservation = self.heap.take(chunk, start, end, part, copied=copied)
        self._undo.append(lambda: self.heap.give_back(reservation))
        return reservation

    def add_copy(self, start_after: int, done_before: int, seconds: float, *, out: bool) -> None:
        """Count a copy: an eviction if `out`, else a prefetch."""
        self._copies += 1
        key, direction = self._copies, self.evictions if out else self.prefetches
        direction.outstanding.add(start_after + 1, done_before)
        self._undo.append(lambda: direction.outstanding.add(start_after + 1, done_before, -1))
        if not out:
            self.ordering.add(start_after, done_before, key)
            self._undo.append(lambda: self.ordering.remove(key))
        if seconds > 0:
            direction.resource.add(start_after, done_before, seconds, key)
            self._undo.append(lambda: direction.resource.remove(key))

    def on_undo(self, step: Callable[[], object]) -> None:
        """Do something if what is pending is taken back."""
        self._undo.append(step)

    def keep(self) -> None:
        """Keep what is pending for good."""
        self._undo.clear()
        self.requirements.keep()

    def undo(self) -> None:
        """Take back what was taken since `keep`."""
        for step in reversed(self._undo):
            step()
        self._undo.clear()
        self.requirements.undo()
