"""The order in which a whole module runs, and from when to when each of its values is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.ir.ordering import post_order

_PASSES_OPERAND_TABLES_ONLY = (Opcode.GET_TUPLE_ELEMENT, Opcode.COPY)
_READS_NOTHING = (Opcode.TUPLE, Opcode.DOMAIN)


@dataclass(slots=True)
class FlatSchedule:
    """One sequence of instructions for a module: each called computation stands before its caller.

    Computations reached through call, while (condition before body), conditional and
    asynchronous starts are laid out once, at their first call; fusions and other embedded
    computations are not entered. A position is an index into `steps`. O(instructions + operands).
    """

    steps: list[Instruction]
    spans: dict[Computation, tuple[int, int]]
    """Per computation its first position, and the one after its last: callers that follow."""
    first_call: dict[Computation, Instruction]
    """The instruction at whose place a computation (not the entry) is laid out."""
    is_scheduled: bool
    """Whether the order is the module's own; else it is post-order, operands first."""

    @classmethod
    def of(cls, module: Module) -> FlatSchedule:
        """Lay out `module`. Raises HloVerifyError if a computation calls itself."""
        result = cls([], {}, {}, module.is_scheduled)
        stack = [_Frame(module.entry, result._order(module.entry))]
        running = {module.entry}
        while stack:
            frame = stack[-1]
            callee = result._advance(frame)
            if callee is None:
                result.spans[frame.computation] = (frame.start, len(result.steps))
                running.remove(frame.computation)
                stack.pop()
                continue
            if callee in running:
                raise HloVerifyError(f"computation '%{callee.name}' calls itself")
            result.first_call[callee] = frame.order[frame.next]
            running.add(callee)
            stack.append(_Frame(callee, result._order(callee), start=len(result.steps)))
        return result

    def is_entered_by(self, callee: Computation, caller: Instruction) -> bool:
        """Whether `caller` is the call at which `callee` is laid out."""
        return self.first_call.get(callee) is caller

    def _order(self, computation: Computation) -> list[Instruction]:
        return list(computation.instructions) if self.is_scheduled else post_order(computation)

    def _advance(self, frame: _Frame) -> Computation | None:
        """Append steps up to a call of something not laid out yet, which is returned."""
        for position in range(frame.next, len(frame.order)):
            instruction = frame.order[position]
            if instruction.called and instruction.opcode in CONTROL_FLOW_CALLERS:
                for callee in callees_in_order(instruction):
                    if callee not in self.spans:
                        frame.next = position
                        return callee
            self.steps.append(instruction)
        return None


@dataclass(slots=True)
class _Frame:
    computation: Computation
    order: list[Instruction]
    start: int = 0
    next: int = 0


def callees_in_order(caller: Instruction) -> tuple[Computation, ...]:
    """The computations a control-flow instruction runs, in the order it first runs them."""
    return caller.called[::-1] if caller.opcode is Opcode.WHILE else caller.called


@dataclass(slots=True)
class LiveRanges:
    """First and last position, both included, at which each value is needed.

    Values are numbers; `start` and `end` are indexed by them.
    """

    start: list[int]
    end: list[int]

    @classmethod
    def of(
        cls,
        schedule: FlatSchedule,
        held: Mapping[Instruction, Sequence[int]],
        start: list[int],
    ) -> LiveRanges:
        """Where values live, given what each instruction holds and where each value begins.

        `held` maps an instruction to its values in pre-order of its shape, the whole shape first.
        A value is needed wherever an instruction holds it, where one reads it, to the end of a
        computation whose root holds it, and, in an asynchronous computation, until the done.
        O(values held + values read).
        """
        result = cls(start, list(start))
        for position, instruction in enumerate(schedule.steps):
            result._extend(held[instruction], position)
            result._read_operands(schedule, held, instruction, position)
            if instruction.opcode is Opcode.ASYNC_DONE:
                for computation in started_by(instruction).called:
                    for wrapped in computation.instructions:
                        result._extend(held[wrapped], position)
        for computation, (_, end) in schedule.spans.items():
            result._extend(held[computation.root], end)
        return result

    def _read_operands(
        self,
        schedule: FlatSchedule,
        held: Mapping[Instruction, Sequence[int]],
        reader: Instruction,
        position: int,
    ) -> None:
        opcode = reader.opcode
        if opcode in _READS_NOTHING:
            return
        if opcode in _PASSES_OPERAND_TABLES_ONLY:
            for operand in reader.operands:
                self._extend(held[operand][:1], position)
            return
        if opcode is Opcode.CALL and schedule.is_entered_by(reader.called[0], reader):
            return  # what the called computation reads counts
        if opcode is Opcode.WHILE and schedule.is_entered_by(reader.called[0], reader):
            position = schedule.spans[callees_in_order(reader)[0]][0]
        for operand in reader.operands:
            self._extend(held[operand], position)

    def _extend(self, values: Sequence[int], position: int) -> None:
        end = self.end
        for value in values:
            if end[value] < position:
                end[value] = position


def started_by(done: Instruction) -> Instruction:
    """The asynchronous start that an asynchronous update or done belongs to. O(updates)."""
    start = done
    while start.opcode in (Opcode.ASYNC_DONE, Opcode.ASYNC_UPDATE):
        start = start.operands[0]
    return start
