"""The time of instructions and copies, by what lies in alternate memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import prod, sqrt

from hloopt.analysis.async_operations import OWN_DONES, OWN_STARTS
from hloopt.analysis.cost.analysis import CostAnalysis
from hloopt.analysis.cost.fusion import FusedReads
from hloopt.analysis.dataflow.slots import Index
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.async_chains import async_followers
from hloopt.ir.opcode import ASYNC
from hloopt.memory_space.costs.parts import operand_bytes, result_bytes
from hloopt.memory_space.options.cost_options import CostOptions
from hloopt.memory_space.use_site import UseSite

OperandPart = tuple[int, Index]
"""The number of an operand and the shape index within it."""
CONTROL_FLOW = (Opcode.WHILE, Opcode.CONDITIONAL)
"""Opcodes whose work is that of the computations they call."""
_DEEPEST = 64
"""The number of loops around an instruction beyond which more count no more: numbers are finite."""
_FREE = ASYNC | OWN_STARTS.keys() | OWN_DONES.keys()


class MemorySpaceCosts:
    """Seconds that instructions and copies take, by XLA's HloCostAnalysis and the rates given.

    Each question about an instruction is O(operands asked about), its first one O(operands).
    """

    def __init__(self, module: Module, options: CostOptions) -> None:
        self.options = options
        self._analysis = CostAnalysis(module, as_xla=True)
        self._compute: dict[Instruction, float] = {}
        self._memory: dict[Instruction, float] = {}
        self._reads = FusedReads()
        self._levels: dict[Computation, int] = {module.entry: 0}

    # -- instructions -------------------------------------------------------------------------

    def compute_seconds(self, instruction: Instruction) -> float:
        """The time of an instruction's arithmetic."""
        known = self._compute.get(instruction)
        if known is None:
            options = self.options
            cost = self._analysis.of(instruction)
            known = self._compute[instruction] = max(
                _quotient(cost.flops, options.flops_per_second),
                _quotient(cost.transcendentals, options.transcendentals_per_second),
                options.flops_min_latency_seconds,
            )
        return known

    def memory_seconds(
        self,
        instruction: Instruction,
        operands: Collection[OperandPart] = (),
        results: Collection[Index] = (),
    ) -> float:
        """The time of an instruction's memory traffic, these parts being in alternate memory."""
        if not operands and not results:
            known = self._memory.get(instruction)
            if known is None:
                total = self._analysis.of(instruction).bytes_accessed
                known = self._memory[instruction] = _quotient(total, self.options.default_rate)
            return known
        options = self.options
        read, written = self.part_bytes(instruction, operands, results)
        rest = self._analysis.of(instruction).bytes_accessed - read - written
        return (
            _quotient(read, options.alternate_mem_read_bandwidth_bytes_per_second)
            + _quotient(written, options.alternate_mem_write_bandwidth_bytes_per_second)
            + _quotient(rest, options.default_rate)
        )

    def default_seconds(
        self,
        instruction: Instruction,
        operands: Collection[OperandPart] = (),
        results: Collection[Index] = (),
    ) -> float:
        """The part of it that is traffic of default memory."""
        total = self._analysis.of(instruction).bytes_accessed
        alternate = sum(self.part_bytes(instruction, operands, results))
        return _quotient(total - alternate, self.options.default_rate)

    def overhead_seconds(
        self,
        instruction: Instruction,
        operands: Collection[OperandPart] = (),
        results: Collection[Index] = (),
    ) -> float:
        """The arithmetic that cannot begin before the first piece of default memory is there."""
        window = self.options.pipeline_overhead_window_size_in_bytes
        total = self._analysis.of(instruction).bytes_accessed
        if not window or total <= 0:
            return 0
        default = total - sum(self.part_bytes(instruction, operands, results))
        return min(window, default) / total * self.compute_seconds(instruction)

    def elapsed_seconds(
        self,
        instruction: Instruction,
        operands: Collection[OperandPart] = (),
        results: Collection[Index] = (),
    ) -> float:
        """The time of one run of an instruction, these parts being in alternate memory.

        Arithmetic and memory traffic overlap. Starts and dones of asynchronous operations are
        free.
        """
        fixed = self._fixed_seconds(instruction, operands, results)
        if fixed is not None:
            return fixed
        if instruction.opcode in _FREE:
            return 0
        memory = self.memory_seconds(instruction, operands, results)
        overhead = self.overhead_seconds(instruction, operands, results)
        return max(self.compute_seconds(instruction), memory + overhead)

    def _fixed_seconds(
        self,
        instruction: Instruction,
        operands: Collection[OperandPart],
        results: Collection[Index],
    ) -> float | None:
        options = self.options
        fixed = None
        if operands:
            fixed = options.fixed_seconds_with_operand_in_alternate_memory
        elif results:
            fixed = options.fixed_seconds_with_only_outputs_in_alternate_memory
        if fixed is None and (operands or results):
            fixed = options.fixed_seconds_per_instruction_in_alternate_memory
        if fixed is None:
            fixed = (options.fixed_seconds_for_opcode or {}).get(instruction.opcode.value)
        return options.fixed_seconds_per_instruction if fixed is None else fixed

    def part_bytes(
        self,
        instruction: Instruction,
        operands: Collection[OperandPart],
        results: Collection[Index],
    ) -> tuple[int, float]:
        """The bytes that an instruction reads and writes of parts, each byte once."""
        cost = self._analysis.of(instruction)
        reading, writing = set(operands), set(results)
        read = sum(
            operand_bytes(instruction, cost, number, index, self._reads)
            for number, index in reading
            if not any((number, index[:n]) in reading for n in range(len(index)))
        )
        written = sum(
            result_bytes(instruction, cost, index)
            for index in writing
            if not any(index[:n] in writing for n in range(len(index)))
        )
        return read, written

    # -- bytes ----------------------------------------------------------------------------------

    def bytes_read(self, use: UseSite) -> int:
        """The bytes that an instruction reads of a part of an operand."""
        cost = self._analysis.of(use.instruction)
        return operand_bytes(use.instruction, cost, use.operand, use.index, self._reads)

    def bytes_written(self, instruction: Instruction, index: Index) -> float:
        """The bytes that an instruction writes of a part of its result."""
        return result_bytes(instruction, self._analysis.of(instruction), index)

    # -- copies -------------------------------------------------------------------------------

    def copy_seconds(self, size: int) -> float:
        """The time of an asynchronous copy of so many bytes between the memories."""
        options = self.options
        if options.fixed_seconds_per_copy is not None:
            return options.fixed_seconds_per_copy
        rate = options.default_rate * options.async_copy_bandwidth_scaling_factor
        return _quotient(size, rate)

    def copy_resources(
        self, schedule: FlatSchedule, factors: Mapping[str, float] | None = None
    ) -> list[float]:
        """The seconds that each time of a schedule gives to copies. O(instructions).

        `factors` are the parts that are left while the asynchronous operations of these names
        run. While and conditional give nothing: what they call does.
        """
        resources = [self.scheduled_seconds(step) for step in schedule.steps]
        if factors:
            _reduce(resources, schedule, factors)
        return resources

    def scheduled_seconds(self, instruction: Instruction) -> float:
        """The time of an instruction in a flat schedule: what it calls has times of its own."""
        return 0 if instruction.opcode in CONTROL_FLOW else self.elapsed_seconds(instruction)

    # -- loops --------------------------------------------------------------------------------

    def while_level(self, computation: Computation) -> int:
        """The number of loops that run a computation, one in the other."""
        path = []
        while computation not in self._levels:
            path.append(computation)
            caller = next(iter(computation.callers), None)
            if caller is None:  # nothing runs it
                self._levels[computation] = 0
            else:
                computation = caller.parent
        level = self._levels[computation]
        for inner in reversed(path):
            caller = next(iter(inner.callers), None)
            level += caller is not None and caller.opcode is Opcode.WHILE
            self._levels[inner] = level
        return level

    def while_multiplier(self, level: int) -> float:
        """The number of runs of what is in so many loops."""
        return float(self.options.while_execution_count ** min(level, _DEEPEST))

    # -- benefits -----------------------------------------------------------------------------

    def use_benefit(self, use: UseSite) -> float:
        """The seconds gained, over all runs, if what a use reads is in alternate memory.

        Of an instruction that computes for longer than it waits for memory not more than 0: what
        would have to be added for it to gain.
        """
        return self._benefit(use.instruction, ((use.operand, use.index),), ())

    def definition_benefit(self, instruction: Instruction, index: Index) -> float:
        """The seconds gained, over all runs, if a part of a result is in alternate memory."""
        return self._benefit(instruction, (), (index,))

    def _benefit(
        self,
        instruction: Instruction,
        operands: Collection[OperandPart],
        results: Collection[Index],
    ) -> float:
        compute, memory = self.compute_seconds(instruction), self.memory_seconds(instruction)
        if memory < compute:
            return memory - compute
        gained = memory - self.memory_seconds(instruction, operands, results)
        return gained * self.while_multiplier(self.while_level(instruction.parent))

    def boundedness(
        self, size: int, definition: tuple[Instruction, Index], uses: Iterable[UseSite]
    ) -> float:
        """The benefit of having a buffer in alternate memory, per square root of its bytes.

        Benefits of its definition and of its uses add up; where none gains anything, it is the
        largest. Uses by while and conditional are those in what they call. O(uses).
        """
        benefit = self.definition_benefit(*definition)
        for use in uses:
            if use.instruction.opcode not in CONTROL_FLOW:
                other = self.use_benefit(use)
                both = benefit > 0 and other > 0
                benefit = benefit + other if both else max(benefit, other)
        if not self.options.is_benefit_scaled_by_size:
            return benefit
        return benefit / sqrt(max(size, 1))

    def gain(self, use: UseSite) -> float:
        """The seconds by which one run of an instruction is shorter with the operand there."""
        instruction = use.instruction
        in_alternate = self.elapsed_seconds(instruction, ((use.operand, use.index),))
        return self.elapsed_seconds(instruction) - in_alternate


def _quotient(amount: float, rate: float) -> float:
    """The time of an amount; 0 without a rate, and for an amount that is not known."""
    return max(amount, 0) / rate if rate else 0


def _reduce(resources: list[float], schedule: FlatSchedule, factors: Mapping[str, float]) -> None:
    """Leave these parts of the resources between instructions of these names and their dones."""
    times = schedule.times
    changes: dict[int, list[Instruction]] = {}
    for start in schedule.steps:
        if start.name in factors:
            followers = async_followers(start) or start.users
            end = max((times[other] for other in followers if other in times), default=0)
            if end > times[start] + 1:
                changes.setdefault(times[start] + 1, []).append(start)
                changes.setdefault(end, []).append(start)
    running: dict[Instruction, None] = {}
    factor = 1.0
    for time in range(len(resources)):
        if time in changes:
            for start in changes[time]:
                if start in running:
                    del running[start]
                else:
                    running[start] = None
            factor = prod(factors[start.name] for start in running)
        resources[time] *= factor
