"""How long instructions compute, by the roofline of a target."""

from __future__ import annotations

from hloopt.analysis.calls import callees_first
from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.roofline import Roofline
from hloopt.analysis.cost.runs import RUNNING
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.targets import Target


class Times:
    """Seconds of computation; collectives take none, what calls others takes what these take."""

    def __init__(self, module: Module, target: Target) -> None:
        self.costs = CostAnalysis(module)
        self._roofline = Roofline(self.costs, target)
        self._computations: dict[Computation, float] = {}
        for computation in callees_first(module):
            self._computations[computation] = sum(map(self.of, computation.instructions))

    def of(self, instruction: Instruction) -> float:
        """One run of an instruction; a loop of unknown trips counts as one trip."""
        opcode = instruction.opcode
        if opcode in COLLECTIVES:
            return 0.0
        if opcode not in RUNNING:
            return self._roofline.of(instruction).seconds
        if opcode is Opcode.CONDITIONAL:
            return self._computations[self.costs.likely_branch(instruction)]
        trips = trip_count(instruction) if opcode is Opcode.WHILE else 1
        once = sum(map(self._computations.__getitem__, instruction.called))
        return once if trips is None else trips * once
