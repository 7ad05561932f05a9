"""The numbers XLA gives for the memory of a compiled program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.memory.allocations import Allocation, AllocationKind
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.heap.replay import Replay, replay
from hloopt.memory.sizes import unpadded_bytes


@dataclass(frozen=True, slots=True)
class MemorySizes:
    """Sizes of one kind of memory in bytes, each a sum over allocations."""

    argument: int = 0
    output: int = 0
    """Outputs with their pointer tables; parameters that are outputs too, donated ones among
    them."""
    alias: int = 0
    """Donated arguments that an output reuses: part of both argument and output."""
    temp: int = 0
    """Temporaries as they are packed, pointer tables among them."""


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """XLA's statistics under XLA's names, in bytes. What code takes is not known from a module."""

    device: MemorySizes
    host: MemorySizes
    """Bytes in host memory, `S(5)`."""
    total_allocation_bytes: int
    """All allocations of the default memory space, constants and thread-local ones too."""
    indefinite_allocations: int
    """Those of them that are no temporaries."""
    peak_memory: int
    """Bytes set aside throughout, plus the most that temporaries need at one time. XLA counts
    host memory in it, and of several memory spaces the one whose temporaries need most."""
    peak_without_temporaries: int
    """Bytes set aside throughout: XLA:CPU reports this as its peak."""
    peak_unpadded_heap_bytes: int
    constant: int
    thread_local: int
    heap: int
    """Bytes of the heaps of temporaries, before pointer tables are added."""
    fragmentation: int
    """Bytes of the heaps beyond what is alive at their fullest."""

    @property
    def total(self) -> int:
        """Argument + output - alias + temp: what the program needs to be loaded and run."""
        device = self.device
        return device.argument + device.output - device.alias + device.temp


def statistics_of(assignment: BufferAssignment, space: int = 0) -> MemoryStatistics:
    """Sum up what an assignment has in one memory space. O(values + events)."""
    flow = assignment.flow
    value_size = assignment.buffers.value_size

    def unpadded(value: int) -> int:
        return unpadded_bytes(flow.definer[value].shape, flow.index(value))

    def memory_space(allocation: Allocation) -> int:
        value = next(iter(allocation.offsets), None)
        return allocation.color if value is None else flow.shape(value).layout.memory_space

    allocations = [a for a in assignment.allocations if assignment.counts_in(a.color, space)]
    traces = assignment.traces_in(space)
    is_host = {a: memory_space(a) == HOST_MEMORY_SPACE and not space for a in allocations}
    default = [a for a in allocations if a.color == space]
    replays = [replay(trace, value_size) for trace in traces]
    heaps = [a for a in allocations if a.is_heap]
    heap = sum(a.heap_size for a in heaps)
    throughout = _throughout(allocations, value_size)
    return MemoryStatistics(
        device=_sizes(a for a in allocations if not is_host[a]),
        host=_sizes(a for a in allocations if is_host[a]),
        total_allocation_bytes=sum(a.size for a in default),
        indefinite_allocations=sum(
            a.size for a in default if a.kind is not AllocationKind.TEMPORARY
        ),
        peak_memory=throughout + _peak(replays),
        peak_without_temporaries=throughout,
        peak_unpadded_heap_bytes=_throughout(allocations, unpadded)
        + _peak(replay(trace, unpadded) for trace in traces),
        constant=_total(allocations, AllocationKind.CONSTANT),
        thread_local=_total(allocations, AllocationKind.THREAD_LOCAL),
        heap=heap,
        fragmentation=heap - sum(r.peak for r in replays),
    )


def _sizes(allocations: Iterable[Allocation]) -> MemorySizes:
    argument = output = alias = temp = 0
    for allocation in allocations:
        if allocation.parameter is not None:
            argument += allocation.size
            alias += allocation.size if allocation.is_aliased else 0
        if allocation.is_live_out:
            output += allocation.size
        if allocation.kind is AllocationKind.TEMPORARY:
            temp += allocation.size
    return MemorySizes(argument, output, alias, temp)


def _total(allocations: Iterable[Allocation], kind: AllocationKind) -> int:
    return sum(a.size for a in allocations if a.kind is kind)


def _throughout(allocations: Iterable[Allocation], size: Callable[[int], int]) -> int:
    """Of each allocation that is set aside for the whole program the largest value."""
    return sum(max(map(size, a.offsets), default=0) for a in allocations if is_set_aside(a))


def is_set_aside(allocation: Allocation) -> bool:
    """Whether an allocation counts in the peak from beginning to end."""
    kind = allocation.kind
    return kind is not AllocationKind.THREAD_LOCAL and kind is not AllocationKind.TEMPORARY


def _peak(replays: Iterable[Replay]) -> int:
    return max((r.peak for r in replays), default=0)
