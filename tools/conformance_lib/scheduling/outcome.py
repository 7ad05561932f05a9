"""What a run of a scheduling record left behind, for expectations to look at."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.diagnostics import HloError
from hloopt.ir import Computation, Instruction, Module


@dataclass(slots=True)
class RunOutcome:
    """The module after the passes of a run, and what they said."""

    module: Module
    input_lengths: dict[str, int]
    """The instructions of each computation before the passes."""
    changed: bool | None = None
    error: HloError | None = None
    peak_memory: int | None = None
    """The peak that the scheduler reports."""
    memory_limit: int | None = None
    """The limit that XLA:GPU would give to the scheduler."""
    repeated: dict[str, bool] = field(default_factory=dict)
    """Whether scheduling again gave the same, by what was compared."""

    def order(self, computation: Computation) -> list[Instruction]:
        return list(computation.instructions)
