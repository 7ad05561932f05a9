"""Whether what is gained by alternate memory is worth the copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloopt.analysis.dataflow.slots import slots_of
from hloopt.ir import Opcode
from hloopt.memory_space.allocation.allocations import Allocation, CopyAllocation
from hloopt.memory_space.allocation.values import AllocationValue
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.heap.chunks import Chunk
from hloopt.memory_space.program import Program

_MAKES_NOTHING = (Opcode.PARAMETER, Opcode.WHILE, Opcode.CONDITIONAL)


def inefficient_times(
    program: Program, made: Sequence[AllocationValue], costs: MemorySpaceCosts, ratio: float
) -> Iterator[tuple[int, int]]:
    """Values with the times at which they had better be in default memory.

    They lie in one place with others, and `ratio` of the bytes that copies move into and out of
    this place is more than the bytes that instructions read and write there. O(uses).
    """
    places: dict[Chunk, list[tuple[AllocationValue, Allocation]]] = {}
    copied: dict[Chunk, int] = {}
    for one in made:
        for allocation in one.sequence:
            if allocation.chunk is not None:
                places.setdefault(allocation.chunk, []).append((one, allocation))
            if isinstance(allocation, CopyAllocation):
                chunk = allocation.chunk or allocation.source.chunk
                if chunk is not None:
                    copied[chunk] = copied.get(chunk, 0) + one.size
    for chunk, members in places.items():
        used = sum(_bytes_used(program, one, stay, costs) for one, stay in members)
        if ratio * copied.get(chunk, 0) <= used:
            continue
        for one, stay in members:
            if not isinstance(stay, CopyAllocation):
                yield one.value, one.time
            yield from ((one.value, program.time_of_use(use.user)) for use in stay.uses)


def _bytes_used(
    program: Program, one: AllocationValue, stay: Allocation, costs: MemorySpaceCosts
) -> float:
    total: float = sum(costs.bytes_read(program.place_of(use)) for use in stay.uses)
    definer = stay.position.instruction
    if not isinstance(stay, CopyAllocation) and definer.opcode not in _MAKES_NOTHING:
        index = slots_of(definer.shape).indices[stay.position.slot]
        total += costs.bytes_written(definer, index)
    return total
