"""Findings of a sweep: problems, the inputs that have them, and counts."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import hloopt

_PACKAGE = str(Path(hloopt.__file__).parent)
_LONGEST_TRACEBACK = 60  # lines


class TooSlow(BaseException):
    """Raised in the middle of whatever takes too long; only sweeps catch it."""


class Problem(NamedTuple):
    """One broken promise."""

    kind: str
    """Equal for what is most likely the same problem: what was broken, and where."""
    details: str
    """A traceback, or what differs."""

    @classmethod
    def of(cls, step: str, error: BaseException) -> Problem:
        """An exception that was raised during `step`."""
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if frame.filename.startswith(_PACKAGE)] or frames
        # The place where the time ran out is accidental: only the file counts.
        place = Path(ours[-1].filename).name if ours else "unknown"
        if ours and not isinstance(error, (TooSlow, RecursionError, MemoryError)):
            place += f":{ours[-1].name}"
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        if len(lines) > _LONGEST_TRACEBACK:
            lines = [*lines[:20], "  …\n", *lines[-30:]]
        return cls(f"{step}: {type(error).__name__} in {place}", "".join(lines)[:20_000])


class Finding(NamedTuple):
    """An input with a problem."""

    number: int
    problem: Problem
    content: bytes
    """The content of the file of the finding."""
    suffix: str = ".hlo"


@dataclass(slots=True)
class Progress:
    """The outcomes of some inputs."""

    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Progress) -> None:
        self.done += other.done
        self.outcomes += other.outcomes
        self.findings += other.findings
