"""The trace of the heap: the order in which temporaries are allocated, shared and freed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from hloopt.analysis.dataflow import Position
from hloopt.ir import Opcode
from hloopt.memory.buffers import Buffers
from hloopt.memory.live_ranges import LiveRanges
from hloopt.memory.overwrite import Overwriting


class EventKind(StrEnum):
    """An event in the life of a value's memory."""

    ALLOC = "alloc"
    FREE = "free"
    SHARE = "share"


class Event(NamedTuple):
    """One step of a heap's history."""

    kind: EventKind
    value: int
    time: int
    """The position in the schedule."""
    canonical: int
    """The value whose memory a shared value takes over; else the value itself."""


@dataclass(slots=True)
class HeapTrace:
    """The history of the temporaries of one color.

    `root` leads each value to the one it was allocated with; `first_tick` and `last_tick` count
    the events of values that have a size.
    """

    events: list[Event] = field(default_factory=list)
    size: dict[int, int] = field(default_factory=dict)
    root: dict[int, int] = field(default_factory=dict)
    first_tick: dict[int, int] = field(default_factory=dict)
    last_tick: dict[int, int] = field(default_factory=dict)

    def groups(self) -> dict[int, list[int]]:
        """By allocated value all values that lie where it lies, itself first."""
        groups: dict[int, list[int]] = {}
        for value, root in self.root.items():
            groups.setdefault(root, []).append(value)
        return groups


def trace_heap(
    values: Collection[int],
    buffers: Buffers,
    ranges: LiveRanges,
    overwriting: Overwriting | None,
) -> HeapTrace:
    """Run the schedule and note what the temporaries `values` need.

    Without `overwriting` no result takes over an operand. O(values · log values + operands).
    """
    return _Tracer(values, buffers, ranges, overwriting).run()


class _Tracer:
    def __init__(
        self,
        values: Collection[int],
        buffers: Buffers,
        ranges: LiveRanges,
        overwriting: Overwriting | None,
    ) -> None:
        self.values = values
        self.buffers = buffers
        self.ranges = ranges
        self.overwriting = overwriting
        self.trace = HeapTrace()
        self.tick = 0
        self.first_of_buffer: dict[int, int] = {}
        self.ending: dict[int, None] = {}
        """The values still to be freed at the present position."""

    def run(self) -> HeapTrace:
        ranges = self.ranges
        starting: dict[int, list[int]] = {}
        ending: dict[int, list[int]] = {}
        for value in ranges.in_order(self.values):
            starting.setdefault(ranges.start[value], []).append(value)
            ending.setdefault(ranges.end[value], []).append(value)
        for time in sorted(starting.keys() | ending.keys()):
            self.ending = dict.fromkeys(ending.get(time, ()))
            for value in starting.get(time, ()):
                self._begin(value, time)
            for value in self.ending:
                self._note(EventKind.FREE, value, time, value)
        return self.trace

    def _begin(self, value: int, time: int) -> None:
        buffer = self.buffers.of_value[value]
        first = self.first_of_buffer.setdefault(buffer.number, value)
        self.trace.size[value] = buffer.size
        if first != value:
            self._share(value, first, time)
            return
        if len(buffer.values) == 1 and self.overwriting is not None:
            operand = self._overwritten_operand(value)
            if operand is not None:
                del self.ending[operand]
                self._note(EventKind.FREE, operand, time, operand)
                self._share(value, operand, time)
                return
        self.trace.root[value] = value
        self._note(EventKind.ALLOC, value, time, value)

    def _share(self, value: int, canonical: int, time: int) -> None:
        trace = self.trace
        trace.root[value] = trace.root[canonical]
        size = max(trace.size[value], trace.size[canonical])
        trace.size[value] = trace.size[canonical] = size
        self._note(EventKind.SHARE, value, time, canonical)

    def _overwritten_operand(self, value: int) -> int | None:
        """An operand's value that ends here, alone in its buffer, which `value` may overwrite."""
        flow = self.ranges.flow
        instruction = flow.definer[value]
        if not self.ending or instruction.opcode is Opcode.COPY:
            return None
        assert self.overwriting is not None
        for operand in instruction.operands:
            for candidate in flow.members(flow.held[operand][:1]):
                if (
                    candidate in self.ending
                    and len(self.buffers.of_value[candidate].values) == 1
                    and flow.definer[candidate] in instruction.operands
                    and self.overwriting.may(
                        candidate, Position(flow.definer[candidate], flow.slot[candidate]), value
                    )
                ):
                    return candidate
        return None

    def _note(self, kind: EventKind, value: int, time: int, canonical: int) -> None:
        trace = self.trace
        trace.events.append(Event(kind, value, time, canonical))
        if not trace.size[value]:
            return
        ticks = trace.last_tick if kind is EventKind.FREE else trace.first_tick
        ticks[value] = self.tick
        self.tick += 1
