"""The result of memory space assignment, for reports and tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.ir import Instruction
from hloopt.memory_space.loop_optimizer.plan import LoopPlan


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """A position in alternate memory with its place there, in bytes."""

    instruction: Instruction
    index: tuple[int, ...]
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class PrefetchedParameter:
    """A parameter of the entry that is loaded before the program runs."""

    parameter: int
    index: tuple[int, ...]
    offset: int


@dataclass(slots=True)
class MemorySpaceReport:
    """The places of one assignment."""

    chunks: list[PlacedChunk] = field(default_factory=list)
    scoped: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Offset and size of the scoped memory of instructions, by name."""
    post_module_chunk: tuple[int, int] | None = None
    """Offset and size of what is needed when the program is over."""
    cross_program_prefetches: list[PrefetchedParameter] = field(default_factory=list)
    loop_plan: LoopPlan = field(default_factory=LoopPlan)
    """The choices for uses in unrolled loops, which the places follow as far as they can."""
