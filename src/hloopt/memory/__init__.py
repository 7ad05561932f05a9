"""The memory a module needs: XLA's buffer assignment, its statistics, memory schedulers."""

from hloopt.memory.analysis import analyze_memory
from hloopt.memory.model import AllocationSummary, LiveBuffer, MemoryReport, PeakInstruction
from hloopt.memory.statistics import MemorySizes, MemoryStatistics

__all__ = [
    "AllocationSummary",
    "LiveBuffer",
    "MemoryReport",
    "MemorySizes",
    "MemoryStatistics",
    "PeakInstruction",
    "analyze_memory",
]
