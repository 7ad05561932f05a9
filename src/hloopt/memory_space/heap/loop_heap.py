"""The alternate memory of a loop whose iterations repeat the same allocations."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.memory_space.heap.gaps import aligned, best_gap


@dataclass(frozen=True, slots=True, eq=False)
class LoopAllocation:
    """A chunk in every iteration: from index `begin` to `end` of it, both included.

    A negative index is in the iteration before, one past the last in the iteration after.
    """

    begin: int
    end: int
    size: int
    offsets: tuple[int, int]
    """Of even and of odd iterations."""


class LoopHeap:
    """Chunks for the iterations of a loop with `loop_size` instructions.

    Even and odd iterations take turns for ever, so times are those of two iterations, in a circle.
    Questions look at all chunks.
    """

    def __init__(self, max_size: int, loop_size: int, alignment: int = 1) -> None:
        self._max_size = max_size
        self._loop_size = loop_size
        self._alignment = alignment
        self._allocations: dict[LoopAllocation, None] = {}

    def find(self, begin: int, end: int, size: int) -> LoopAllocation | None:
        """A chunk for even and one for odd iterations, without reserving them; None if none fit.

        Each takes the smallest gap, the lowest of equal ones; that of even iterations is first.
        """
        assert begin <= end
        length = end - begin + 1
        if length > 2 * self._loop_size:  # a chunk would still be in use two iterations later
            return None
        odd = begin + self._loop_size
        first = best_gap(self._taken([(begin, length)]), size)
        beside = self._taken([(odd, length)])
        if self._meet(begin, length, odd, length):
            beside = sorted([*beside, self._range(first, size)])
        second = best_gap(beside, size)
        if max(first, second) + size > self._max_size:
            return None
        return LoopAllocation(begin, end, size, (first, second))

    def find_same(self, begin: int, end: int, size: int) -> LoopAllocation | None:
        """Chunks at one offset in all iterations, without reserving them; None if none fit."""
        assert begin <= end
        length = end - begin + 1
        if length > self._loop_size:  # the chunk would still be in use one iteration later
            return None
        taken = self._taken([(begin, length), (begin + self._loop_size, length)])
        offset = best_gap(taken, size)
        if offset + size > self._max_size:
            return None
        return LoopAllocation(begin, end, size, (offset, offset))

    def allocate(self, begin: int, end: int, size: int) -> LoopAllocation | None:
        """Reserve what `find` finds."""
        return self._reserve(self.find(begin, end, size))

    def allocate_same(self, begin: int, end: int, size: int) -> LoopAllocation | None:
        """Reserve what `find_same` finds."""
        return self._reserve(self.find_same(begin, end, size))

    def put_back(self, allocation: LoopAllocation) -> None:
        """Undo a `remove`: nothing else has been reserved since."""
        self._allocations[allocation] = None

    def remove(self, allocation: LoopAllocation) -> None:
        """Free the chunks of an allocation. Raises KeyError where they are not reserved."""
        del self._allocations[allocation]

    @property
    def last_offset(self) -> int:
        """The end of the highest chunk; 0 where there is none."""
        return max((max(a.offsets) + a.size for a in self._allocations), default=0)

    def remaining(self) -> list[int]:
        """The bytes that are free at each index of an iteration."""
        free = [self._max_size] * self._loop_size
        for allocation in self._allocations:
            for index in range(allocation.begin, allocation.end + 1):
                free[index % self._loop_size] -= allocation.size
        return free

    def _reserve(self, found: LoopAllocation | None) -> LoopAllocation | None:
        if found is not None:
            self._allocations[found] = None
        return found

    def _taken(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The ranges of addresses in use at any time of spans (first time, length), sorted."""
        return sorted(
            self._range(offset, allocation.size)
            for allocation in self._allocations
            if allocation.size
            for parity, offset in enumerate(allocation.offsets)
            if any(
                self._meet(
                    *(start, length, allocation.begin + parity * self._loop_size),
                    allocation.end - allocation.begin + 1,
                )
                for start, length in spans
            )
        )

    def _range(self, offset: int, size: int) -> tuple[int, int]:
        """The addresses that nothing else can use because of a chunk: up to the next offset."""
        return offset, aligned(offset + size, self._alignment)

    def _meet(self, first: int, length: int, second: int, other_length: int) -> bool:
        """Whether two spans of times share one, in the circle of two iterations."""
        around = 2 * self._loop_size
        return (second - first) % around < length or (first - second) % around < other_length
