"""The cost of instructions: arithmetic, and bytes between memory and the processor.

    costs = CostAnalysis(module)
    costs.of(instruction).flops, costs.module().bytes_accessed

The figures are those of XLA's HloCostAnalysis; `docs/cost.md` says what each opcode counts.
"""

from hloopt.analysis.cost.analysis import CostAnalysis
from hloopt.analysis.cost.model import NO_COST, Cost

__all__ = ["NO_COST", "Cost", "CostAnalysis"]
