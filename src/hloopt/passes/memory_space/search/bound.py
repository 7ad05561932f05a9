"""The least time that any assignment can take by the cost model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hloopt.analysis.dataflow import slots_of
from hloopt.analysis.dataflow.slots import Index
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.allowed import Allowed
from hloopt.memory_space.costs.costs import MemorySpaceCosts, OperandPart
from hloopt.memory_space.costs.runtime import RuntimeSimulator
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.program import TRIVIAL, Program
from hloopt.memory_space.use_site import UseSite
from hloopt.passes.memory_space.times import CALLERS, simulator_of


def least_seconds(module: Module, options: MemorySpaceOptions) -> float:
    """The least run time: all that fits is in alternate memory, and all copies are hidden.

    It is the longer of two: what the instructions take, and what default memory takes to move each
    byte that has to be moved once. Those are what does not fit, parameters that are read, results,
    and, in each iteration of a loop, what the body reads from outside beyond alternate memory's
    size. No assignment need reach it. O(instructions + operands).
    """
    return _Bound.of(module, options).seconds()


@dataclass(slots=True)
class _Bound:
    program: Program
    options: MemorySpaceOptions
    simulator: RuntimeSimulator
    fitting: set[Buffer]
    """The buffers that can be in alternate memory."""
    from_outside: dict[Computation, dict[Buffer, int]] = field(default_factory=dict)
    """By the body of a loop the bytes that it reads, once, of what comes from outside of it."""

    @classmethod
    def of(cls, module: Module, options: MemorySpaceOptions) -> _Bound:
        program = Program.of(module)
        allowed = Allowed(program, options)
        fitting = {
            buffer
            for buffer in program.buffers.all
            if buffer.size <= options.max_size_in_bytes and allowed.buffer(buffer)
        }
        simulator = simulator_of(module, program.schedule, options)
        return cls(program, options, simulator, fitting)

    @property
    def costs(self) -> MemorySpaceCosts:
        return self.simulator.costs

    def seconds(self) -> float:
        instructions = default = 0.0
        for step in self.simulator.steps():
            if step.opcode in TRIVIAL or step.opcode is Opcode.PARAMETER:
                continue
            runs = self.simulator.runs_of(step.parent)
            operands = self._fitting_operands(step)
            results = [index for _, index in self._fitting(step)]
            instructions += self.costs.elapsed_seconds(step, operands, results) * runs
            default += max(0.0, self.costs.default_seconds(step, operands, results)) * runs
            self._note_outside(step)
        rate = self.costs.options.default_rate
        moved = self._loop_bytes() + self._entry_bytes()
        return max(instructions, default + (moved / rate if rate else 0.0))

    def _fitting_operands(self, step: Instruction) -> list[OperandPart]:
        return [
            (number, index)
            for number, operand in enumerate(step.operands)
            for _, index in self._fitting(operand)
        ]

    def _fitting(self, instruction: Instruction) -> Iterator[tuple[int, Index]]:
        """The arrays of a result that can be in the memory: their values and indices."""
        flow, of_value = self.program.flow, self.program.buffers.of_value
        slots = slots_of(instruction.shape)
        for slot, value in enumerate(flow.held[instruction]):
            if slots.parts[slot].is_array and of_value[value] in self.fitting:
                yield value, slots.indices[slot]

    def _note_outside(self, step: Instruction) -> None:
        """Note what a step of a loop's body reads of what the loop only passes through."""
        body = step.parent
        if not any(c.opcode is Opcode.WHILE and c.called[0] is body for c in body.callers):
            return
        flow, of_value = self.program.flow, self.program.buffers.of_value
        read = self.from_outside.setdefault(body, {})
        for number, operand in enumerate(step.operands):
            for value, index in self._fitting(operand):
                if flow.definer[value].parent is not body:
                    size = self.costs.bytes_read(UseSite(step, number, index))
                    buffer = of_value[value]
                    read[buffer] = max(read.get(buffer, 0), min(size, buffer.size))

    def _loop_bytes(self) -> float:
        size = self.options.max_size_in_bytes
        return sum(
            max(0, sum(read.values()) - size) * self.simulator.runs_of(body)
            for body, read in self.from_outside.items()
        )

    def _entry_bytes(self) -> int:
        """The bytes of parameters that are read, outside of loops, and of results."""
        flow, entry = self.program.flow, self.program.module.entry
        in_loops = {buffer for read in self.from_outside.values() for buffer in read}
        found = 0
        for buffer in self.fitting:
            definers = [flow.definer[value] for value in buffer.values]
            if any(d.opcode is Opcode.PARAMETER and d.parent is entry for d in definers):
                reads = [
                    self.costs.bytes_read(self.program.place_of(use))
                    for value in buffer.values
                    for use in flow.uses(value)
                    if use.user.opcode not in (*CALLERS, *TRIVIAL) and self.program.has(use.user)
                ]
                found += 0 if buffer in in_loops else min(max(reads, default=0), buffer.size)
            elif buffer.is_live_out:
                found += buffer.size
        return found
