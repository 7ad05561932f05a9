"""The cost of every instruction and computation of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from hloopt.analysis.cost.applied import applying
from hloopt.analysis.cost.custom_calls import custom_call_cost, opaque_cost
from hloopt.analysis.cost.fusion import FusedReads, fusion_cost
from hloopt.analysis.cost.model import Cost
from hloopt.analysis.cost.rules import DEFAULT, RULES
from hloopt.analysis.cost.sizes import leaf_elements
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first

_UNKNOWN = Cost(-1, 0, 0, -1, -1)


class CostAnalysis:
    """The costs of a module's instructions, by the rules of XLA's HloCostAnalysis.

    Beyond XLA's, a loop costs its body times its trip count, a scan its computation for each step,
    a conditional its costliest branch, and a custom call reads its operands and writes its
    result. With `as_xla` the figures are XLA's: loops take one step, a conditional has the most
    of any branch in each figure, and a custom call counts -1 flops and bytes.

    Works when asked; what it was asked is remembered, so ask before changing the module. A
    question takes the time of the computations it is the first to look at; instructions that
    are alike are costed once.
    """

    def __init__(self, module: Module, *, as_xla: bool = False) -> None:
        self.as_xla = as_xla
        self.unknown_loops: dict[Instruction, None] = {}
        """Loops looked at whose trip count is not known: they count as one trip."""
        self.unknown_calls: dict[Instruction, None] = {}
        """Custom calls looked at whose arithmetic is not known: they count no flops."""
        self._module = module
        self._computations: dict[Computation, Cost] = {}
        self._reads = FusedReads()
        self._alike: dict[tuple[object, ...], Cost] = {}

    def of(self, instruction: Instruction) -> Cost:
        """One run of an instruction, with what it calls; of a loop, all its trips."""
        special = self._SPECIAL.get(instruction.opcode)
        if special is not None:
            return special(self, instruction)
        rule = RULES.get(instruction.opcode, DEFAULT)
        key: tuple[object, ...] = (
            *(instruction.opcode, instruction.shape, instruction.called),
            *[operand.shape for operand in instruction.operands],
        )
        if rule.attributes:
            attributes = instruction.attributes
            key = (*key, *[attributes.get(name) for name in rule.attributes])
        cost = self._alike.get(key)
        if cost is None:
            cost = self._alike[key] = rule.cost(instruction, self.computation)
        return cost

    def computation(self, computation: Computation) -> Cost:
        """One run of a computation, with what it calls."""
        cost = self._computations.get(computation)
        if cost is None:
            for callee in depth_first([computation], self._new_callees):
                self._computations[callee] = Cost.total(map(self.of, callee.instructions))
            cost = self._computations[computation]
        return cost

    def module(self) -> Cost:
        """One run of the module's entry computation."""
        return self.computation(self._module.entry)

    def _new_callees(self, computation: Computation) -> Iterable[Computation]:
        for instruction in computation.instructions:
            for callee in instruction.called:
                if callee not in self._computations:
                    yield callee

    def _fusion(self, fusion: Instruction) -> Cost:
        key = (fusion.called, fusion.shape)
        cost = self._alike.get(key)
        if cost is None:
            inside = self.computation(fusion.called[0])
            cost = self._alike[key] = fusion_cost(fusion, inside, self._reads)
        return cost

    def _while(self, loop: Instruction) -> Cost:
        body, condition = map(self.computation, loop.called)
        if self.as_xla:
            return Cost.total((body, condition))
        count = trip_count(loop)
        if count is None:
            self.unknown_loops[loop] = None
            return Cost.total((body, condition))
        return Cost.total((body.times(count), condition.times(count + 1)))

    def _conditional(self, conditional: Instruction) -> Cost:
        if not self.as_xla:
            return self.computation(self.likely_branch(conditional))
        branches = [self.computation(branch) for branch in conditional.called]
        written = max(branch.bytes_written for branch in branches)
        moved = max(branch.bytes_accessed for branch in branches)
        return Cost(
            max(branch.flops for branch in branches),
            max(branch.transcendentals for branch in branches),
            *(moved - written, written),
            max(branch.unfused_bytes for branch in branches),
        )

    def likely_branch(self, conditional: Instruction) -> Computation:
        """The branch that counts: the one that moves most; of equals the one with most flops."""

        def size(branch: Computation) -> tuple[int, int]:
            cost = self.computation(branch)
            return cost.bytes_accessed, cost.flops

        return max(conditional.called, key=size)

    def _scan(self, scan: Instruction) -> Cost:
        if self.as_xla:  # takes the first carry for what the computation is applied to
            shape = scan.shape
            count = leaf_elements(shape.elements[1] if shape.is_tuple else shape)
        else:
            (dimension,) = dimensions_of(scan)
            count = scan.operands[0].shape.dimensions[dimension]
        return applying(scan, (count, self.computation(scan.called[0])))

    def _custom_call(self, call: Instruction) -> Cost:
        if self.as_xla:
            return _UNKNOWN
        known = custom_call_cost(call)
        if known is not None:
            return known
        self.unknown_calls[call] = None
        return opaque_cost(call)

    _SPECIAL: ClassVar[dict[Opcode, Callable[[CostAnalysis, Instruction], Cost]]] = {
        Opcode.FUSION: _fusion,
        Opcode.WHILE: _while,
        Opcode.CONDITIONAL: _conditional,
        Opcode.SCAN: _scan,
        Opcode.CUSTOM_CALL: _custom_call,
    }
