"""The part of the memory's bandwidth instructions and operations want while they run."""

from __future__ import annotations

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.roofline import Roofline
from hloopt.ir import Instruction, Module
from hloopt.simulation.operations import Operation
from hloopt.targets import Target


class Bandwidth:
    """Shares of the bandwidth of a target's main memory, from 0 to 1.

    An instruction wants what its memory traffic takes of the time that it takes at least
    (`Roofline`): 1 if it is bound by memory. An operation wants what its traffic takes of its
    latency, in the memory of the device.
    """

    def __init__(self, module: Module, target: Target, cycles_per_microsecond: float) -> None:
        self._bytes_per_cycle = target.memory_bandwidth / (cycles_per_microsecond * 1e6)
        self._costs = CostAnalysis(module)
        self._roofline = Roofline(self._costs, target)

    def of_work(self, instruction: Instruction) -> float:
        """The bandwidth that an instruction of the main stream wants."""
        seconds = self._roofline.of(instruction).seconds
        main = self._roofline.memory.main_seconds(instruction, self._costs.of(instruction))
        return main / seconds if seconds else 0.0

    def of_operation(self, operation: Operation) -> float:
        """The bandwidth that an operation wants in its latency. O(leaves)."""
        if operation.latency <= 0:
            return 0.0
        traffic = operation.traffic(self._roofline.memory)
        return min(1.0, traffic / self._bytes_per_cycle / operation.latency)
