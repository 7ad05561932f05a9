"""Estimates from bytes, flops and the rates of a target, for what no model of XLA knows.

Times are in microseconds.
"""

from __future__ import annotations

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.custom_calls import custom_call_cost
from hloopt.analysis.cost.model import NO_COST
from hloopt.analysis.cost.roofline import MATRIX, Bound, Roofline
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.latency.fixed import FREE
from hloopt.analysis.latency.fused_work import fused_work, results_of, written
from hloopt.analysis.latency.kernels import bytes_read
from hloopt.analysis.latency.links import LinkTimes
from hloopt.analysis.latency.loop_fusion import NOTHING, LoopFusion
from hloopt.analysis.latency.model import FREE_TIME, Origin, Time
from hloopt.analysis.stage import Stage
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.shapes.shape import Shape
from hloopt.targets.target import Target

ATTAINABLE = 0.8
"""The share of the peak rate of matrix units that large products reach: what XLA measured on an
H100, and between 0.73 and 0.79 on a B200."""
_HOST_OPCODES = (Opcode.INFEED, Opcode.OUTFEED)
_FREE = FREE | {Opcode.AFTER_ALL, Opcode.ADD_DEPENDENCY, Opcode.DOMAIN}
_MANY_PASSES = frozenset(
    (Opcode.SORT, Opcode.CHOLESKY, Opcode.TRIANGULAR_SOLVE, Opcode.FFT, Opcode.TOPK)
)
"""Opcodes that go over their data more often than the analysis of costs counts."""
_LOOPS = ("kLoop", "kInput")
_MEGA = 1e6


class Estimates:
    """The times of instructions of one module by the rates of one target.

    What bytes and flops say has the origin `Origin.RATES`, or `Origin.LINK`; where they do not say
    it all, the time is a guess.
    """

    def __init__(self, module: Module, target: Target) -> None:
        self._target = target
        self._costs = CostAnalysis(module)
        self.roofline = Roofline(self._costs, target, matrix_share=ATTAINABLE)
        self.links = LinkTimes(module, target)
        is_unfused = Stage.of(module).fused.holds is False
        self._fusion = LoopFusion(self.roofline) if is_unfused else None

    def work(self, instruction: Instruction) -> Time:
        """Arithmetic or memory, whatever takes longer; over the link to the host what is there.

        O(1) for most, and linear in what a fusion holds the first time.
        """
        if is_nothing(instruction):
            return FREE_TIME
        kernel = None if self._fusion is None else self._fusion.kernel(instruction)
        if kernel is NOTHING:
            return FREE_TIME
        if kernel is not None:
            origin = Origin.FUSION if self.is_known(instruction) else Origin.GUESS
            return Time(kernel.seconds * _MEGA, origin)
        own = self.bound(instruction).seconds * _MEGA
        origin = Origin.RATES if self.is_known(instruction) else Origin.GUESS
        return self.with_host(instruction, Time(own, origin))

    def with_host(self, instruction: Instruction, time: Time) -> Time:
        """`time`, or that of what goes over the link to the host, if that takes longer."""
        over_link = self._bytes_over_link(instruction)
        if not over_link:
            return time
        return max(time, self.links.host_time(over_link), key=lambda each: each.cycles)

    def bound(self, instruction: Instruction) -> Bound:
        """The bound of a kernel; of a loop fusion by the bytes that it needs of its operands.

        These are fewer than the analysis of costs has, which follows slices, but no other names of
        an operand.
        """
        bound = self.roofline.of(instruction)
        if instruction.opcode is not Opcode.FUSION or fusion_kind_of(instruction) not in _LOOPS:
            return bound
        work = fused_work(instruction)
        moved: list[tuple[Shape, float]] = [
            (instruction.operands[source.parameter_number].shape, min(bytes_read(source, count)))
            for source, count in work.reads.items()
        ]
        size = sum(leaf_bytes(written(result)) for result in results_of(instruction))
        moved.append((instruction.shape, size))
        return Bound(bound.compute, self.roofline.memory.seconds(moved))

    def copy(self, start: Instruction) -> Time:
        """A copy-start until its done: read at one rate, written at another. O(leaves).

        A guess where no rate of either memory is known.
        """
        source, result = start.operands[0].shape, start.shape.elements[0]
        size = leaf_bytes(source)
        if host_bytes(start.shape):
            return self.links.host_time(size)
        seconds = self.roofline.memory.seconds(((source, size), (result, size)))
        return Time(seconds * _MEGA, Origin.RATES if seconds or not size else Origin.GUESS)

    def exchange(self, start: Instruction) -> Time:
        """A collective, send or recv, whole or its start, until its end. O(devices)."""
        return self.links.exchange(start)

    def is_known(self, instruction: Instruction) -> bool:
        """Whether the bytes and flops counted are those that it needs."""
        opcode = instruction.opcode
        if opcode is Opcode.CUSTOM_CALL:
            return custom_call_cost(instruction) is not None
        if opcode in MATRIX:
            return self._target.matrix_rate(instruction.operands[0].shape.type_name) is not None
        return opcode not in _MANY_PASSES

    def _bytes_over_link(self, instruction: Instruction) -> int:
        cost = self._costs.of(instruction)
        if instruction.opcode in _HOST_OPCODES:
            return cost.bytes_accessed
        sizes = cost.operand_bytes or (cost.bytes_read,) * len(instruction.operands)
        pairs = zip(instruction.operands, sizes, strict=False)  # calls count no operand
        read = sum(min(host_bytes(operand.shape), size) for operand, size in pairs)
        read = min(read, cost.bytes_read)
        return read + min(host_bytes(instruction.shape), cost.bytes_written)


def is_nothing(instruction: Instruction) -> bool:
    """Whether nothing runs for an instruction: it names a value, or tells a pass something."""
    if instruction.opcode is Opcode.CUSTOM_CALL:
        return custom_call_cost(instruction) is NO_COST
    return instruction.opcode in _FREE


def host_bytes(shape: Shape) -> int:
    """The bytes of a shape that are in the memory of the host."""
    return sum(leaf_bytes(leaf) for leaf in shape.leaves() if leaf.is_on_host)
