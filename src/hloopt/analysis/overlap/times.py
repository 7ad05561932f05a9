"""How long instructions compute, by the roofline of a target."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.roofline import Roofline
from hloopt.analysis.cost.runs import RUNNING
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.targets import Target


class Times:
    """Seconds of computation; collectives take none, what calls others takes what these take."""

    def __init__(
        self, costs: CostAnalysis, target: Target, callees_first: Iterable[Computation]
    ) -> None:
        """For the instructions of these computations, which run nothing else. O(instructions)."""
        self._costs = costs
        self._roofline = Roofline(costs, target)
        self._instructions: dict[Instruction, float] = {}
        self._computations: dict[Computation, float] = {}
        for computation in callees_first:
            seconds = {i: self._estimate(i) for i in computation.instructions}
            self._instructions |= seconds
            self._computations[computation] = sum(seconds.values())

    def of(self, instruction: Instruction) -> float:
        """One run of an instruction; a loop of unknown trips counts as one trip. O(1)."""
        return self._instructions[instruction]

    def _estimate(self, instruction: Instruction) -> float:
        opcode = instruction.opcode
        if opcode in COLLECTIVES:
            return 0.0
        if opcode not in RUNNING:
            return self._roofline.of(instruction).seconds
        if opcode is Opcode.CONDITIONAL:
            return self._computations[self._costs.likely_branch(instruction)]
        trips = trip_count(instruction) if opcode is Opcode.WHILE else 1
        once = sum(map(self._computations.__getitem__, instruction.called))
        return once if trips is None else trips * once
