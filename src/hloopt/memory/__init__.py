"""How much memory a module needs."""

from hloopt.memory.estimate import estimate_memory as analyze_memory
from hloopt.memory.model import LiveBuffer, MemoryReport, MemorySizes, PeakInstruction

__all__ = ["LiveBuffer", "MemoryReport", "MemorySizes", "PeakInstruction", "analyze_memory"]
