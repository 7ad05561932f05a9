"""The fate of a module that went through a pipeline: the findings that reports show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hloopt.diagnostics import Source
    from hloopt.memory.model import MemoryReport
    from hloopt.pass_framework.runner import PipelineResult
    from hloopt.reports.diff.findings import ModuleDiff
    from hloopt.reports.schedule.comparison import ScheduleChange


class Outcome:
    """The fate of one module."""

    def __init__(
        self, name: str, source: Source | None, before: str, text: str, result: PipelineResult
    ) -> None:
        self.name = name
        self.source = source
        """The source the module was read from; without text for a proto."""
        self.before = before
        self.text = text
        self.result = result
        self.changed = text != before
        self.seconds: dict[str, float] = {}
        """Seconds by phase: read, passes, write, check (the result is parsed and verified),
        report."""
        self.diff: ModuleDiff | None = None
        self.memory: tuple[MemoryReport, MemoryReport] | None = None
        """Before and after."""
        self.schedule: ScheduleChange | None = None
        """None where no schedule with asynchronous operations changed."""
        self.notes: list[str] = []
