"""Places in memory, and when the program touches what lies there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Instruction, Opcode
from hloopt.memory.allocations import AllocationKind
from hloopt.memory.analysis import MemoryAnalysis

Interval = tuple[int, int]
"""Positions, both included."""

_STARTS = frozenset(
    (
        *(Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.COPY_START, Opcode.SEND, Opcode.RECV),
        *(Opcode.ALL_REDUCE_START, Opcode.ALL_GATHER_START, Opcode.COLLECTIVE_PERMUTE_START),
    )
)
"""Opcodes of operations that go on until a later instruction says they are done."""
_CALLS = frozenset((Opcode.CALL, Opcode.CONDITIONAL))


@dataclass(slots=True, eq=False)
class Place:
    """Memory that counts in the peak: a place in the heap, or what is set aside throughout."""

    values: list[int]
    size: int
    kind: AllocationKind
    is_live_out: bool
    busy: list[Interval] = field(default_factory=list)
    """The ranges in which it is read or written, in order and disjoint; empty until asked for."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which nothing touches a place although something is kept there.

    `before` is the position of the last access and `after` that of the next; -1 and the number of
    positions where the caller has it.
    """

    value: int
    """The value that is kept."""
    before: int
    after: int


class Places:
    """The places of a module that are large enough to matter, and their gaps."""

    def __init__(self, analysis: MemoryAnalysis, least: int) -> None:
        """Leave out what is smaller than `least` bytes. O(values)."""
        self.analysis = analysis
        self.flow, self.ranges = analysis.flow, analysis.ranges
        self.schedule: FlatSchedule = analysis.assignment.schedule
        self.end = len(self.schedule.steps)
        self.of_value: dict[int, Place] = {}
        self.all: list[Place] = []
        for allocation in analysis.set_aside:
            size = max(map(analysis.value_size, allocation.offsets), default=0)
            values = list(allocation.offsets)
            self._add(Place(values, size, allocation.kind, allocation.is_live_out), least)
        for root, values in analysis.trace.groups().items():
            size = analysis.value_size(root)
            self._add(Place(values, size, AllocationKind.TEMPORARY, is_live_out=False), least)

    def _add(self, place: Place, least: int) -> None:
        if place.size < max(least, 1):
            return
        self.all.append(place)
        for value in place.values:
            self.of_value[value] = place

    def gap_at(self, place: Place, position: int) -> Gap | None:
        """The gap around a position; None where the place is free or in use there."""
        value = self.kept(place, position)
        if value is None:
            return None
        busy = self._busy(place)
        number = bisect_left(busy, (position + 1,))
        before = busy[number - 1][1] if number else -1
        after = busy[number][0] if number < len(busy) else self.end
        if before >= position or (before < 0 and value not in self.analysis.parameters):
            return None
        if any(self._comes_back(place, loop) for loop in self._loops(position)):
            return None
        return Gap(value, before, after)

    def kept(self, place: Place, position: int) -> int | None:
        """The value a place holds at a position; None where it is free."""
        start, end = self.ranges.start, self.ranges.end
        found = [v for v in place.values if start[v] <= position <= end[v]]
        if found or place.kind is AllocationKind.TEMPORARY:
            return found[0] if found else None
        return next((v for v in place.values if v in self.analysis.parameters), place.values[0])

    # -- accesses -------------------------------------------------------------------------------

    def _busy(self, place: Place) -> list[Interval]:
        if not place.busy:
            intervals = sorted(self._accesses(place))
            for start, end in intervals:
                if place.busy and start <= place.busy[-1][1] + 1:
                    place.busy[-1] = (place.busy[-1][0], max(end, place.busy[-1][1]))
                else:
                    place.busy.append((start, end))
        return place.busy

    def last_access(self, value: int) -> int:
        """The position of a value's last read; -1 if there is none."""
        uses = self.flow.uses(value)
        return max((end for use in uses for _, end in self._access(use.user)), default=-1)

    def _accesses(self, place: Place) -> Iterator[Interval]:
        entry = self.flow.module.entry
        for value in place.values:
            definer = self.flow.definer[value]
            is_given = definer.opcode is Opcode.PARAMETER and definer.parent is entry
            if not is_given and definer.opcode is not Opcode.CONSTANT:
                yield from self._access(definer)
            for use in self.flow.uses(value):
                yield from self._access(use.user)
        if place.is_live_out:
            yield self.end - 1, self.end - 1

    def _access(self, instruction: Instruction) -> Iterator[Interval]:
        """The range in which an instruction may touch what it reads and writes."""
        schedule = self.schedule
        time = schedule.times.get(instruction)
        if time is None:
            return
        first = last = time
        start = self._start_of(instruction)
        if start is not None:
            last = max(time, self._done(start))
        for callee in instruction.called:
            if schedule.is_entered_by(callee, instruction):
                first = min(first, schedule.spans[callee][0])
        if instruction.opcode is Opcode.WHILE:
            yield first, first
            yield time, last
        else:
            yield (first if instruction.opcode in _CALLS else time), last

    def _start_of(self, instruction: Instruction) -> Instruction | None:
        """The start of the operation that an instruction is or runs in; None if it has no done."""
        around: Instruction | None = instruction
        while around is not None and around.opcode not in _STARTS:
            around = self.schedule.first_call.get(around.parent)
        return around

    def _done(self, start: Instruction) -> int:
        """The position of an instruction's last user's last user: what it starts is done there."""
        last = 0
        waiting = [start]
        while waiting:
            for user in waiting.pop().users:
                last = max(last, self.schedule.times.get(user, 0))
                if user.opcode in _STARTS:
                    waiting.append(user)
        return last

    # -- loops ------------------------------------------------------------------------------------

    def _loops(self, position: int) -> Iterator[Interval]:
        """The first and last positions of the loops around a position."""
        schedule = self.schedule
        computation = schedule.steps[position].parent
        while computation is not self.flow.module.entry:
            caller = schedule.first_call[computation]
            if caller.opcode is Opcode.WHILE:
                spans = [schedule.spans[callee] for callee in caller.called]
                yield min(start for start, _ in spans), max(end for _, end in spans) - 1
            computation = caller.parent

    def _comes_back(self, place: Place, loop: Interval) -> bool:
        """Whether the next iteration of a loop may touch what this one leaves."""
        first, last = loop
        if not any(first <= end and start <= last for start, end in self._busy(place)):
            return False
        start, end = self.ranges.start, self.ranges.end
        return any(start[v] <= first or end[v] >= last for v in place.values if start[v] >= 0)

    def position_in(self, instruction: Instruction, position: int) -> int | None:
        """The position for a copy of `instruction` whose value is needed at `position`.

        That is in its own computation: before the call that leads to the position. None where the
        position is not below it.
        """
        schedule = self.schedule
        computation = schedule.steps[position].parent
        while computation is not instruction.parent:
            if computation is self.flow.module.entry:
                return None
            caller = schedule.first_call[computation]
            position = min(
                schedule.spans[callee][0]
                for callee in caller.called
                if schedule.is_entered_by(callee, caller)
            )
            computation = caller.parent
        return position
