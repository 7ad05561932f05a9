"""The time that a search may go on."""

from __future__ import annotations

import time
from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Told what takes long, and which part of it is done, from 0 to 1."""


class SearchBudget:
    """The steps a search may take: a number of them, or as many as fit in a time."""

    def __init__(
        self,
        what: str,
        seconds: float,
        steps: int | None,
        on_progress: Progress | None,
        *,
        steps_per_report: int = 1,
    ) -> None:
        """`what` is searched for, as progress says; it does so every few steps."""
        self._what = what
        self._steps = steps
        self._seconds = seconds
        self._begin = time.perf_counter()
        self._on_progress = on_progress
        self._steps_per_report = steps_per_report
        self.taken = 0
        """Steps so far."""

    @property
    def part(self) -> float:
        """The part that is used up, from 0 to 1."""
        if self._steps is not None:
            used, whole = float(self.taken), float(self._steps)
        else:
            used, whole = time.perf_counter() - self._begin, self._seconds
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
