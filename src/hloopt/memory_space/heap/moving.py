"""New places for all that is placed, where a buffer finds no room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hloopt.memory_space.allocation.allocations import Allocation, CopyAllocation
from hloopt.memory_space.allocation.values import AllocationValue
from hloopt.memory_space.heap.chunks import Chunk, ChunkHeap, Reservation
from hloopt.memory_space.heap.repacking import RepackBlock, best_fit_repack
from hloopt.memory_space.options.options import MemorySpaceOptions

Repacker = Callable[[list[RepackBlock]], bool]
"""Gives blocks new offsets; False where nothing changed."""


@dataclass(slots=True)
class Mover:
    """Repacks alternate memory, a limited number of times."""

    heap: ChunkHeap
    repacker: Repacker | None
    left: int
    """The number of times that are left."""

    @classmethod
    def of(cls, options: MemorySpaceOptions, heap: ChunkHeap, limit: int) -> Mover:
        repacker = options.repacker
        if repacker in ("best-fit", "best-fit-few-permutations"):
            every = repacker == "best-fit"

            def best_fit(blocks: list[RepackBlock]) -> bool:
                alignment = options.alignment_in_bytes
                return best_fit_repack(blocks, limit, alignment, every_permutation=every)

            return cls(heap, best_fit, options.max_repacks)
        return cls(heap, None if isinstance(repacker, str) else repacker, options.max_repacks)

    @property
    def can_move(self) -> bool:
        return self.repacker is not None and self.left > 0

    def move(
        self,
        values: Iterable[AllocationValue],
        fixed: Iterable[tuple[Chunk, int]],
        reserved: Iterable[Reservation],
    ) -> bool:
        """Repack what is placed; whether anything changed.

        `fixed` are chunks with the one time at which each is in use. O(blocks log blocks).
        """
        if self.repacker is None:
            return False
        self.left -= 1
        chunks: list[Chunk] = []
        blocks: list[RepackBlock] = []
        for chunk, start, end in (*_used(values), *((c, t, t) for c, t in fixed)):
            chunks.append(chunk)
            blocks.append(self._block(chunk, start, end))
        for reservation in reserved:
            chunks.append(reservation.chunk)
            blocks.append(self._block(reservation.chunk, reservation.start, reservation.end))
        if not self.repacker(blocks):
            return False
        offsets = {
            self.heap.group_of(chunk): block.offset
            for chunk, block in zip(chunks, blocks, strict=True)
            if block.offset is not None
        }
        self.heap.move(offsets)
        return True

    def _block(self, chunk: Chunk, start: int, end: int) -> RepackBlock:
        return RepackBlock(start, end, chunk.size, chunk.offset, self.heap.group_of(chunk))


def _used(values: Iterable[AllocationValue]) -> Iterator[tuple[Chunk, int, int]]:
    for value in values:
        for allocation in value.sequence:
            if allocation.chunk is not None:
                yield allocation.chunk, _first_time(allocation), allocation.end


def _first_time(allocation: Allocation) -> int:
    """The first time at which an allocation's place is in use."""
    if not isinstance(allocation, CopyAllocation):
        return allocation.start
    return 0 if allocation.cross_program_index is not None else allocation.start_after + 1
