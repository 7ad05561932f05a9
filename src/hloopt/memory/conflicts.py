"""Values that are computed where another one, in the same buffer, is still needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from hloopt.analysis.dataflow import Dataflow, Use
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.attributes.values import Alias
from hloopt.ir.opcode import ASYNC
from hloopt.memory.buffers import Buffer, read_only_values


class Conflicts:
    """Checks live ranges, as they are before values that share are told apart."""

    def __init__(
        self,
        flow: Dataflow,
        schedule: FlatSchedule,
        start: Sequence[int],
        end: Sequence[int],
        aliases: tuple[Alias, ...],
    ) -> None:
        self.flow = flow
        self.schedule = schedule
        self.start = start
        self.end = end
        self.read_only = read_only_values(flow, aliases)

    def in_buffer(self, buffer: Buffer, order: Sequence[int]) -> int:
        """The number of values of a buffer that are written over one that is needed later.

        `order` has them by start. Tables of tuples do not count: those of one buffer hold the same
        pointers, whoever writes them. O(values · log values), beside uses of what looks like one.
        """
        if not buffer.size or self.flow.shape(order[0]).is_tuple:
            return 0
        found = 0
        needed: list[tuple[int, int]] = []
        for value in order:
            start = self.start[value]
            while needed and needed[0][0] <= start:
                heappop(needed)
            found += any(self._is_overwritten(earlier, value) for _, earlier in needed)
            is_kept = value in self.read_only
            heappush(needed, (sys.maxsize if is_kept else self.end[value], value))
        return found

    def _is_overwritten(self, before: int, after: int) -> bool:
        """Whether `before` is needed after `after` is computed, by what may run as well.

        What must not be written at all always is. Of the branches of a conditional, laid out one
        behind the other, only one runs. What is made asynchronously of operands bound later is
        laid out before these.
        """
        if before in self.read_only:
            return True
        reading = {
            async_start_of(use.user) for use in self.flow.uses(after) if use.user.opcode in ASYNC
        }
        if not reading.isdisjoint(self._started_around(self.flow.definer[before])):
            return False
        branches = dict(self._branches(self.flow.definer[after].parent))
        return any(
            all(branches.get(call, inside) is inside for call, inside in self._branches(where))
            for where in self._needed_after(before, after)
        )

    def _needed_after(self, before: int, after: int) -> Iterator[Computation]:
        """The reads of a value, or its use as a result, later than another one is computed."""
        spans, time = self.schedule.spans, self.start[after]
        for instruction, _ in self.flow.positions(before):
            computation = instruction.parent
            if instruction.is_root and computation in spans and spans[computation][1] > time:
                yield computation
        started = self._started_around(self.flow.definer[after])
        for use in self.flow.uses(before):
            if use.user.opcode in ASYNC and async_start_of(use.user) in started:
                continue  # what runs asynchronously may write over its own operands
            at = self._time_of_reading(use)
            if at is not None and at > time:
                yield use.user.parent

    def _time_of_reading(self, use: Use) -> int | None:
        """The position of a read; None where a called computation reads it, if anything does."""
        user = use.user
        if user not in self.schedule.times or user.opcode is Opcode.CALL:
            return None
        if user.opcode is Opcode.CONDITIONAL and use.operand > 0:
            return None
        if user.opcode in (Opcode.WHILE, Opcode.CONDITIONAL):
            return min(self.schedule.spans[callee][0] for callee in user.called)
        return self.schedule.times[user]

    def _started_around(self, instruction: Instruction) -> set[Instruction]:
        """The asynchronous starts that an instruction belongs to, or runs for. O(depth)."""
        found: set[Instruction] = set()
        around: Instruction | None = instruction
        while around is not None:
            if around.opcode in ASYNC:
                found.add(async_start_of(around))
            around = self.schedule.first_call.get(around.parent)
        return found

    def _branches(self, computation: Computation) -> Iterator[tuple[Instruction, Computation]]:
        """The conditionals that a computation runs in, and the branch of each. O(depth)."""
        caller = self.schedule.first_call.get(computation)
        while caller is not None:
            if caller.opcode is Opcode.CONDITIONAL:
                yield caller, computation
            computation = caller.parent
            caller = self.schedule.first_call.get(computation)
