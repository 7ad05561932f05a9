"""From when to when each value is needed, over the schedule of the whole module."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from hloopt.analysis.dataflow import NOTHING, Dataflow, Position
from hloopt.analysis.dataflow.scope import control_flow_callees
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.memory.buffers import Buffers
from hloopt.memory.conflicts import Conflicts


@dataclass(slots=True)
class LiveRanges:
    """First and last time, both included, at which each value is needed.

    Lists are indexed by value; what the schedule does not reach starts and ends at -1.
    """

    flow: Dataflow
    schedule: FlatSchedule
    start: list[int]
    end: list[int]
    last_position: list[Position]
    """The last position that holds each value; its definition unless another is strictly later."""
    conflicts: int = 0
    """The number of arrays that are computed where one in the same buffer is still needed."""

    @classmethod
    def of(cls, flow: Dataflow, schedule: FlatSchedule, buffers: Buffers) -> LiveRanges:
        """The ranges, those of values that share a buffer one after the other.

        O(slots + values read + values · log values of a buffer).
        """
        count = len(flow.definer)
        definitions = [Position(i, slot) for i, slot in zip(flow.definer, flow.slot, strict=True)]
        result = cls(flow, schedule, [-1] * count, [-1] * count, definitions)
        result._begin()
        result._hold()
        result._keep_parameters(buffers)
        result._read()
        result._separate(buffers)
        return result

    def in_order(self, values: Iterable[int]) -> list[int]:
        """The values the schedule reaches, by start, end and number."""
        start, end = self.start, self.end
        return sorted((v for v in values if start[v] >= 0), key=lambda v: (start[v], end[v], v))

    # -- steps of the construction --------------------------------------------------------------

    def _begin(self) -> None:
        schedule = self.schedule
        for value in self.flow.values():
            instruction = self.flow.definer[value]
            time = schedule.times.get(instruction)
            if time is None:
                continue
            first, end = schedule.spans[instruction.parent]
            self.start[value] = first if instruction.opcode is Opcode.PARAMETER else time
            self.end[value] = end if instruction.is_root else time
        for done in schedule.steps:
            if done.opcode is Opcode.ASYNC_DONE:
                self._extend_wrapped(done)

    def _extend_wrapped(self, done: Instruction) -> None:
        """Hold values of asynchronous computations, also in further calls, until the done."""
        time = self.schedule.times[done]
        waiting = self._entered(async_start_of(done))
        for computation in waiting:  # grows
            for instruction in computation.instructions:
                waiting += self._entered(instruction)
                for value in self.flow.held[instruction]:
                    if value != NOTHING and self.flow.definer[value] is instruction:
                        self.end[value] = max(self.end[value], time)

    def _entered(self, caller: Instruction) -> list[Computation]:
        callees = control_flow_callees(caller)
        return [callee for callee in callees if self.schedule.is_entered_by(callee, caller)]

    def _hold(self) -> None:
        times, end = self.schedule.times, self.end
        for computation in self.flow.scope.is_global:
            for instruction in computation.instructions:
                time = times.get(instruction, -1)
                if instruction.is_root:
                    time = self.schedule.spans[computation][1]
                for slot, held in enumerate(self.flow.held[instruction]):
                    for value in self.flow.members((held,)):
                        if value != NOTHING and end[value] < time:
                            end[value] = time
                            self.last_position[value] = Position(instruction, slot)

    def _keep_parameters(self, buffers: Buffers) -> None:
        """Parameters that nothing is aliased with live to the end of the program."""
        entry = self.flow.module.entry
        aliased = {(alias.parameter, alias.parameter_index) for alias in buffers.aliases}
        for parameter in entry.parameters:
            number = parameter.parameter_number
            for value in self.flow.held[parameter]:
                if (number, self.flow.index(value)) not in aliased:
                    self.end[value] = self.schedule.spans[entry][1]

    def _read(self) -> None:
        end, flow = self.end, self.flow
        for time, user in enumerate(self.schedule.steps):
            if not user.operands:
                continue
            if user.opcode is Opcode.CALL:
                continue  # what the called computation reads counts
            if user.opcode is Opcode.WHILE:
                time = self._time_of_body(user)
            for operand in user.operands:
                for value in flow.read(user, operand):
                    if end[value] < time and value != NOTHING:
                        end[value] = time

    def _time_of_body(self, loop: Instruction) -> int:
        return max(self.schedule.times[p] for p in loop.called[0].parameters)

    def _separate(self, buffers: Buffers) -> None:
        """Let each value of a buffer end where the next one starts."""
        start, end = self.start, self.end
        conflicts = Conflicts(self.flow, self.schedule, start, end, buffers.aliases)
        for buffer in buffers.all:
            if len(buffer.values) < 2:
                continue
            order = self.in_order(buffer.values)
            self.conflicts += conflicts.in_buffer(buffer, order) if order else 0
            for before, after in pairwise(order):
                end[after] = max(end[before], end[after])
                end[before] = min(end[before], start[after])
