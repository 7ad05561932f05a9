"""The outcome of a scheduling record's run, for expectations to look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hloopt.diagnostics import (
    HloError,
    HloSyntaxError,
    PassRefused,
    PipelineError,
)
from hloopt.ir import Computation, Instruction, Module

_KINDS: tuple[tuple[type[HloError], str], ...] = (
    (PipelineError, "invalid_argument"),
    (HloSyntaxError, "invalid_argument"),
    (PassRefused, "invalid_argument"),
)
"""XLA's status codes by our errors: what a user can mend, in the input, the options or the files
that they name. Everything else is internal."""
KINDS = ("invalid_argument", "internal", "failed_precondition", "resource_exhausted")


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
    unscheduled: dict[str, list[Instruction]] = field(default_factory=dict)
    """The order that stands for no schedule, of the computations without one."""
    repeated: dict[str, bool] = field(default_factory=dict)
    """Whether scheduling again gave the same, by what was compared."""

    def other_kind(self, wanted: str) -> Iterator[str]:
        """A mismatch where the run did not fail with XLA's status code `wanted`."""
        if self.error is None:
            return  # what expects an error says so
        found = next((kind for error, kind in _KINDS if isinstance(self.error, error)), "internal")
        if found != wanted.lower():
            yield f"error_kind: expected {wanted}, found {found}: {self.error.message}"

    def order(self, computation: Computation) -> list[Instruction]:
        return list(computation.instructions)
