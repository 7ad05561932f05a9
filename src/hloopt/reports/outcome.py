"""The fate of a module that went through a pipeline: the findings that reports show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hloopt.diagnostics import Source
    from hloopt.memory.model import MemoryReport
    from hloopt.pass_framework.runner import PipelineResult
    from hloopt.reports.diff.findings import ModuleDiff
    from hloopt.reports.schedule.comparison import ScheduleChange


@dataclass(slots=True, eq=False)
class Outcome:
    """The fate of one module."""

    name: str
    source: Source | None
    """The source the module was read from; without text for a proto."""
    before: str
    text: str
    result: PipelineResult
    changed: bool
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds by phase: read, passes, write, check (the result is parsed and verified), report."""
    diff: ModuleDiff | None = None
    memory: tuple[MemoryReport, MemoryReport] | None = None
    """Before and after."""
    schedule: ScheduleChange | None = None
    """None where no schedule with asynchronous operations changed."""
    notes: list[str] = field(default_factory=list)
