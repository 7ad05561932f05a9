"""The time that a search may go on, as options say it, and as it is used up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from hloopt.diagnostics import PipelineError
from hloopt.options import PassOptions, Seconds, option

Progress = Callable[[str, float], None]
"""Told what takes long, and which part of it is done, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits(PassOptions):
    """Options of a search that goes on until it is told to end."""

    budget: Seconds = option(Seconds(30), "how long to look, such as 30s or 2min")
    iterations: int | None = option(
        None, "how many changes to try instead: the result then is always the same"
    )
    seed: int = option(0, "another one tries other changes")

    def __post_init__(self) -> None:
        """Raise PipelineError for a search that would never end."""
        for name in ("budget", "iterations"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < inf:
                raise PipelineError(f"the search's {name} is {value}: it has to be 0 or more")


class SearchBudget:
    """The steps a search may take: a number of them, or as many as fit in a time."""

    def __init__(
        self,
        what: str,
        limits: SearchLimits,
        on_progress: Progress | None,
        *,
        steps_per_report: int = 1,
    ) -> None:
        """`what` is searched for, as progress says; it does so every few steps."""
        self._what = what
        self._limits = limits
        self._begin = time.perf_counter()
        self._on_progress = on_progress
        self._steps_per_report = steps_per_report
        self.taken = 0
        """Steps so far."""

    @property
    def part(self) -> float:
        """The part that is used up, from 0 to 1."""
        limits = self._limits
        if limits.iterations is not None:
            used, whole = float(self.taken), float(limits.iterations)
        else:
            used, whole = time.perf_counter() - self._begin, limits.budget
        return min(used / whole, 1.0) if whole else 1.0

    def take(self) -> bool:
        """Whether another step may be done; it then counts as taken."""
        part = self.part
        if part >= 1:
            return False
        if self._on_progress is not None and self.taken % self._steps_per_report == 0:
            self._on_progress(f"searching for {self._what}", part)
        self.taken += 1
        return True
