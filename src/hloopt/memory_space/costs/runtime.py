"""Estimates of the time a scheduled module runs for, by what lies in alternate memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.dataflow.slots import Index, slots_of
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.shapes.shape import Shape
from hloopt.memory_space.costs.copy_queues import CopyQueues
from hloopt.memory_space.costs.costs import MemorySpaceCosts, OperandPart

_COPIES = (Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.COPY)
"""Operations that an async-start does as copies do."""


class RuntimeSimulator:
    """A run of the flattened schedule, instruction by instruction.

    Arrays are in the memory that their layouts say. Loops of unknown trip count make as many trips
    as the options say; what asynchronous computations do is hidden. O(operands) per instruction.
    """

    def __init__(
        self,
        costs: MemorySpaceCosts,
        schedule: FlatSchedule,
        alternate_memory_space: int,
        skipped: Collection[Opcode] = (Opcode.WHILE,),
    ) -> None:
        """`skipped` are opcodes whose work is that of the steps they call.

        XLA's simulator counts calls and conditionals once more.
        """
        self.queues = CopyQueues(costs.options.default_rate)
        self.costs = costs
        self._schedule = schedule
        self._space = alternate_memory_space
        self._skipped = skipped
        self._runs: dict[Computation, int] = {}

    def seconds(self) -> float:
        """The run time, with waits for copies between the memories."""
        return sum(self.step(step) * self.runs_of(step.parent) for step in self.steps())

    def seconds_without_copies(self) -> float:
        """The run time if all copies are done when they are needed."""
        return sum(
            self.costs.elapsed_seconds(step, *self.alternate_parts(step))
            * self.runs_of(step.parent)
            for step in self.steps()
        )

    def step(
        self, instruction: Instruction, operands: Collection[OperandPart] | None = None
    ) -> float:
        """The seconds one run of an instruction takes from now on; copies go on meanwhile.

        They get the bandwidth of default memory that the instruction leaves. A copy's start puts it
        into the queue of its direction. `operands` are those in alternate memory, by layouts
        unless given.
        """
        if instruction.opcode in (Opcode.COPY_DONE, Opcode.ASYNC_DONE):
            return self.queues.wait(_start_of(instruction))
        if _is_copy_start(instruction):
            self._start(instruction)
            return 0
        from_layouts, results = self.alternate_parts(instruction)
        operands = from_layouts if operands is None else operands
        seconds = self.costs.elapsed_seconds(instruction, operands, results)
        self.queues.run(seconds - self.costs.default_seconds(instruction, operands, results))
        return seconds

    def alternate_parts(self, instruction: Instruction) -> tuple[list[OperandPart], list[Index]]:
        """The arrays among operands and results whose layouts say alternate memory."""
        operands = [
            (number, index)
            for number, operand in enumerate(instruction.operands)
            for index in self._alternate(operand.shape)
        ]
        return operands, list(self._alternate(instruction.shape))

    def _alternate(self, shape: Shape) -> Iterator[Index]:
        if not shape.is_tuple:
            if shape.is_array and shape.layout.memory_space == self._space:
                yield ()
            return
        slots = slots_of(shape)
        for number, part in enumerate(slots.parts):
            if part.is_array and part.layout.memory_space == self._space:
                yield slots.indices[number]

    def gain(self, user: Instruction, operand: Instruction) -> float:
        """The seconds by which one run of an instruction is shorter with an operand as it is.

        The operand is in alternate memory; without, it would be in default memory.
        """
        operands, results = self.alternate_parts(user)
        others = [part for part in operands if user.operands[part[0]] is not operand]
        costs = self.costs
        without = costs.elapsed_seconds(user, others, results)
        return without - costs.elapsed_seconds(user, operands, results)

    def is_alternate(self, shape: Shape) -> bool:
        """Whether a part of a shape is in alternate memory."""
        return next(self._alternate(shape), None) is not None

    def _start(self, start: Instruction) -> None:
        if start.opcode is Opcode.COPY_START:
            target, source = start.shape.elements[:2]
        else:
            (source, *_), target = start.shape.elements[0].elements, start.shape.elements[1]
        to_alternate = self.is_alternate(target)
        if to_alternate != self.is_alternate(source):
            queue = self.queues.reads if to_alternate else self.queues.writes
            queue[start] = leaf_bytes(target)

    def steps(self) -> Iterator[Instruction]:
        """The instructions that take time, in order."""
        for step in self._schedule.steps:
            if step.opcode not in self._skipped and not step.parent.is_asynchronous:
                yield step

    def runs_of(self, computation: Computation) -> int:
        """The number of times a computation runs."""
        path = []
        while computation not in self._runs:
            path.append(computation)
            caller = self._schedule.first_call.get(computation)
            if caller is None:
                self._runs[computation] = 1
            else:
                computation = caller.parent
        runs = self._runs[computation]
        for inner in reversed(path):
            caller = self._schedule.first_call.get(inner)
            if caller is not None and caller.opcode is Opcode.WHILE:
                trips = trip_count(caller)
                runs *= self.costs.options.while_execution_count if trips is None else trips
            self._runs[inner] = runs
        return runs


def _is_copy_start(instruction: Instruction) -> bool:
    if instruction.opcode is Opcode.ASYNC_START:
        return instruction.called[0].root.opcode in _COPIES
    return instruction.opcode is Opcode.COPY_START


def _start_of(done: Instruction) -> Instruction:
    return done.operands[0] if done.opcode is Opcode.COPY_DONE else async_start_of(done)
