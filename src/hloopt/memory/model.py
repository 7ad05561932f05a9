"""The findings of a memory analysis. All sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.analysis.source_lines import SourceLine
from hloopt.memory.allocations import AllocationKind, ParameterPart
from hloopt.memory.statistics import MemoryStatistics
from hloopt.memory.traffic import Traffic


@dataclass(frozen=True, slots=True)
class LiveBuffer:
    """Memory that is in use at the peak."""

    name: str
    """The instruction that defines its value, with a shape index where its result is a tuple."""
    computation: str
    shape: str
    size: int
    kind: AllocationKind
    op_name: str
    """The op_name in its metadata; empty where there is none."""
    source: SourceLine
    """The line of the program it is from."""
    live: tuple[int, int]
    """First and last position, both included, at which the value is needed."""


@dataclass(frozen=True, slots=True)
class PeakInstruction:
    """The position at which most memory is in use."""

    position: int
    name: str
    computation: str
    opcode: str
    op_name: str
    source: SourceLine


@dataclass(frozen=True, slots=True)
class AllocationSummary:
    """One allocation of the assignment."""

    index: int
    size: int
    kind: AllocationKind
    color: int
    """The memory space."""
    parameter: ParameterPart | None
    is_aliased: bool
    is_live_out: bool
    holds: str
    """Its largest value, by the name of the instruction that defines it."""
    values: int
    """The number of values that lie in it."""


@dataclass(frozen=True, slots=True)
class SpaceUse:
    """The use of one memory space."""

    number: int
    """n of `S(n)`; 0 is main memory."""
    name: str
    statistics: MemoryStatistics
    traffic: Traffic | None
    """None where all lies in one memory space."""


@dataclass(slots=True)
class MemoryReport:
    """The memory a module needs on one device, when and for what."""

    module: str
    backend: str
    """The backend whose rules placed the buffers: "cpu" or "gpu"."""
    order: str
    """The order the positions count in: "schedule", or the scheduler asked for want of one."""
    space: str
    """The memory space that the numbers are of, by name."""
    statistics: MemoryStatistics
    allocations: list[AllocationSummary]
    peak_instruction: PeakInstruction | None
    """None for a module that needs no memory."""
    live_at_peak: list[LiveBuffer]
    """Largest first; the sizes add up to `peak`."""
    timeline: list[int]
    """Bytes in use at each position."""
    spaces: list[SpaceUse] = field(default_factory=list)
    """All memory spaces in which anything lies, main memory first."""
    apart: frozenset[int] = frozenset()
    """The numbers of memory spaces that do not count in main memory."""
    assumptions: list[str] = field(default_factory=list)
    """The assumptions behind the numbers, one sentence each."""
    notices: list[str] = field(default_factory=list)
    """The subject of the numbers, where it is not what XLA places on one device: a sentence
    each."""
    doubts: list[str] = field(default_factory=list)
    """Clauses that say why the numbers allow no verdict; empty where they do."""

    @property
    def peak(self) -> int:
        """The most that is in use at one time: XLA's peak_memory_in_bytes."""
        return self.statistics.peak_memory

    @property
    def throughout(self) -> int:
        """Bytes set aside from beginning to end."""
        return self.statistics.peak_without_temporaries
