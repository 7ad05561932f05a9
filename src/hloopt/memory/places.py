"""The places of buffers over time: what a picture of the memory shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from hloopt.analysis.source_lines import SourceLine
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.memory.allocations import AllocationKind
from hloopt.memory.analysis import MemoryAnalysis, shape_text


@dataclass(frozen=True, slots=True)
class PlacedBuffer:
    """A value in its place."""

    name: str
    """The instruction that defines it, with its shape index."""
    computation: str
    opcode: str
    shape: str
    size: int
    """Bytes."""
    kind: AllocationKind
    op_name: str
    source: SourceLine
    allocation: int
    """The number of the allocation it lies in."""
    offset: int
    """The place in the allocation where it begins."""
    live: tuple[int, int]
    """First and last position, both included, at which it is needed; it ends before the position
    at which another value takes over its place."""
    in_timeline: bool
    """Whether the timeline counts it while it is alive: it is a temporary of the heap that needs
    most, and no table of pointers. What is set aside throughout counts in `throughout`."""


def placed_buffers(analysis: MemoryAnalysis) -> list[PlacedBuffer]:
    """The buffers in each allocation over time, by position and allocation.

    At no time two share a byte, and those `in_timeline` that are alive at a position add up to what
    the timeline has there, beside what is set aside throughout. What has no size is left out, and
    what no step of the schedule needs. Near-linear in the values.
    """
    traces = analysis.assignment.traces_in(analysis.space)
    of_trace = {value: root for trace in traces for value, root in trace.root.items()}
    in_fullest_heap = set(analysis.trace.root.values())
    of_value = analysis.assignment.buffers.of_value
    placed: list[PlacedBuffer] = []
    for number, allocation in analysis.allocations.items():
        if allocation.kind is AllocationKind.THREAD_LOCAL:
            continue
        groups: dict[tuple[bool, int], list[int]] = {}
        for value in allocation.offsets:
            root = of_trace.get(value)
            key = (True, root) if root is not None else (False, of_value[value].number)
            groups.setdefault(key, []).append(value)
        for (is_traced, root), values in groups.items():
            in_timeline = is_traced and root in in_fullest_heap
            for value, live in _spans(analysis, values):
                size = analysis.value_size(root if is_traced else value)
                if size:
                    place = number, allocation.offsets[value]
                    found = _placed(
                        analysis, value, size, allocation.kind, place, live, in_timeline
                    )
                    placed.append(found)
    return sorted(placed, key=lambda b: (b.live, b.allocation, b.offset))


def _spans(
    analysis: MemoryAnalysis, values: Iterable[int]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """The ranges in which each of the values at one place has it for itself."""
    start, end = analysis.ranges.start, analysis.ranges.end
    ordered = analysis.ranges.in_order(values)
    for value, following in pairwise(ordered):
        last = min(end[value], start[following] - 1)
        if start[value] <= last:
            yield value, (start[value], last)
    for value in ordered[-1:]:
        yield value, (start[value], end[value])


def _placed(
    analysis: MemoryAnalysis,
    value: int,
    size: int,
    kind: AllocationKind,
    place: tuple[int, int],
    live: tuple[int, int],
    in_timeline: bool,
) -> PlacedBuffer:
    instruction = analysis.flow.definer[value]
    return PlacedBuffer(
        analysis.name(value),
        instruction.parent.name,
        instruction.opcode.value,
        shape_text(analysis.flow.shape(value)),
        size,
        kind,
        op_name_of(instruction),
        analysis.line(value),
        *place,
        live,
        in_timeline,
    )
