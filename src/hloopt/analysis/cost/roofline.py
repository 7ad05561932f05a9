"""The least time instructions take on a target: what arithmetic needs, and what memory needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hloopt.analysis.cost.analysis import CostAnalysis
from hloopt.analysis.cost.memory_rates import MemoryRates
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.targets import Target

MATRIX = frozenset((Opcode.DOT, Opcode.RAGGED_DOT, Opcode.SCALED_DOT, Opcode.CONVOLUTION))
"""Operations of the matrix units; vector units do the rest."""


class Bound(NamedTuple):
    """Seconds that one run takes at least, for two reasons."""

    compute: float
    memory: float

    @property
    def seconds(self) -> float:
        """Arithmetic and memory traffic overlap: the longer of both."""
        return max(self.compute, self.memory)

    @property
    def is_compute(self) -> bool:
        return self.compute > self.memory


class Roofline:
    """Bounds by the peak rates of a target.

    Each dot runs at the matrix rate of its operands' type, all else at the vector rate of its
    result's, a transcendental like one flop. Where a target has no such rate, arithmetic takes no
    time. Matrix units reach `matrix_share` of their rate.
    """

    def __init__(self, costs: CostAnalysis, target: Target, *, matrix_share: float = 1.0) -> None:
        self.target = target
        self.memory = MemoryRates(target)
        self._matrix_share = matrix_share
        self._costs = costs
        self._fused: dict[Computation, float] = {}
        self.without_rate: dict[str, None] = {}
        """Element types whose arithmetic takes no time, as the target has no rate for them."""

    def of(self, instruction: Instruction) -> Bound:
        """The bound of one run of an instruction that runs no computations of its own."""
        memory = self.memory.of(instruction, self._costs.of(instruction))
        if instruction.opcode is not Opcode.FUSION:
            return Bound(self.compute(instruction), memory)
        body = instruction.called[0]
        compute = self._fused.get(body)
        if compute is None:
            compute = self._fused[body] = self._compute_fused(body)
        return Bound(compute, memory)

    def _compute_fused(self, body: Computation) -> float:
        """The time of all fused instructions, those of nested fusions included."""
        return sum(
            self.compute(each) for instruction in body.instructions for each in unfused(instruction)
        )

    def compute(self, instruction: Instruction) -> float:
        """The seconds that the arithmetic of an instruction, not a fusion, takes."""
        cost = self._costs.of(instruction)
        work = cost.flops + cost.transcendentals
        if not work:
            return 0.0
        is_matrix, element_type = unit_of(instruction)
        if is_matrix:
            peak = self.target.matrix_rate(element_type)
            rate = None if peak is None else peak * self._matrix_share
        elif self.target.vector:
            rate = self.target.vector_rate(element_type)
        else:
            return 0.0
        if rate is None:
            self.without_rate[element_type] = None
            return 0.0
        return work / rate


def unfused(instruction: Instruction) -> Iterator[Instruction]:
    """The instruction, or those that it fuses, nested fusions included."""
    waiting = [instruction]
    while waiting:
        each = waiting.pop()
        if each.opcode is Opcode.FUSION:
            waiting.extend(each.called[0].instructions)
        else:
            yield each


def unit_of(instruction: Instruction) -> tuple[bool, str]:
    """Whether matrix units do the arithmetic of an instruction, not a fusion, else vector units;
    and the element type whose rate counts."""
    if instruction.opcode in MATRIX or instruction.opcode is Opcode.CUSTOM_CALL:
        return True, _element_type(instruction.operands[0])
    return False, _element_type(instruction)


def _element_type(instruction: Instruction) -> str:
    """The type of the array, or of the first one in a tuple."""
    shape = instruction.shape
    while shape.elements:
        shape = shape.elements[0]
    return shape.type_name
