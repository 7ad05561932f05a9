"""All that is known of a module's memory, as plain data: JSON, pages and traces are made of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hloopt.collector import collector_paused
from hloopt.ir.module import Module
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.memory.backends import Backend, backend_of
from hloopt.memory.limit import Fit, MemoryLimit, needed_bytes
from hloopt.memory.model import MemoryReport
from hloopt.memory.places import PlacedBuffer, placed_buffers
from hloopt.reports.console.units import human_bytes
from hloopt.reports.memory.record import buffer_to_json, memory_to_json
from hloopt.reports.prepared import PreparedModule
from hloopt.reports.sources import StackTable
from hloopt.reports.stage_notices import stage_to_json

if TYPE_CHECKING:
    from hloopt.memory.advice.model import Advice
    from hloopt.targets import Target


@dataclass
class MemoryFindings:
    """A module's memory: the report, whether it fits, and what would help."""

    prepared: PreparedModule
    analysis: MemoryAnalysis
    report: MemoryReport
    limit: MemoryLimit | None
    fit: Fit | None
    """None without a limit, and where the report's doubts allow no verdict."""
    advice: Advice | None
    """None where nobody asked."""

    @classmethod
    def of(
        cls,
        module: Module,
        target: Target | None,
        *,
        backend: Backend | None = None,
        limit: MemoryLimit | None = None,
        wants_advice: bool | None = None,
    ) -> MemoryFindings:
        """Analyze a module. Times of advice are those of `target`; without one it has none.

        `wants_advice` None stands for: if it does not fit. Near-linear in the module.
        """
        with collector_paused():
            prepared, analysis, report = _measure(module, backend)
        fit = None
        if limit is not None and not report.doubts:
            fit = Fit(needed_bytes(report.statistics), limit)
        if wants_advice is None:
            wants_advice = fit is not None and not fit.fits
        advice = None
        if wants_advice:
            from hloopt.memory.advice import advise

            advice = advise(analysis, report, target, None if limit is None else limit.size)
        return cls(prepared, analysis, report, limit, fit, advice)

    @property
    def no_verdict(self) -> str | None:
        """The reason why there is no word on a limit that was given; None where there is one, or no
        limit."""
        if self.limit is None or self.fit is not None:
            return None
        against = f"{human_bytes(self.limit.size)} ({self.limit.source})"
        return f"no verdict against {against}: {'; '.join(self.report.doubts)}"

    def placed(self) -> list[PlacedBuffer]:
        """Every buffer with its place and lifetime. Near-linear in the values."""
        with collector_paused():
            return placed_buffers(self.analysis)

    @cached_property
    def model(self) -> dict[str, Any]:
        """All of it as plain data, with the instruction at each position; sizes in bytes."""
        stacks = StackTable()
        return {
            **memory_to_json(self.report, stacks),
            "instructions": [step.name for step in self.analysis.assignment.schedule.steps],
            "buffers": [buffer_to_json(buffer, stacks) for buffer in self.placed()],
            "stage": stage_to_json(self.prepared.stage),
            "fit": None if self.fit is None else fit_to_json(self.fit),
            "no_verdict": self.no_verdict,
            "advice": None if self.advice is None else asdict(self.advice),
        }


def memory_report(module: Module, *, backend: Backend | None = None) -> MemoryReport:
    """The memory of a module, flattened and with copies inserted where that is yet to be done.

    Near-linear in the module. Raises HloError for a module whose shapes or calls make no sense.
    """
    with collector_paused():
        return _measure(module, backend)[2]


def _measure(
    module: Module, backend: Backend | None
) -> tuple[PreparedModule, MemoryAnalysis, MemoryReport]:
    own = backend_of(module)
    backend = backend or own
    prepared = PreparedModule.of(module, backend=backend)
    analysis = MemoryAnalysis.of(prepared.module, backend=backend)
    report = analysis.report()
    report.notices = list(prepared.notices)
    report.doubts = list(prepared.doubts)
    if own.name != backend.name:
        asked = backend.name.upper()
        report.assumptions.append(
            f"These rules were asked for: nothing in the module tells that XLA:{asked} compiled it."
        )
    if count := analysis.ranges.conflicts:
        values = "value is" if count == 1 else "values are"
        report.doubts.append(f"copies are missing: {count} {values} overwritten while needed")
    return prepared, analysis, report


def fit_to_json(fit: Fit) -> dict[str, Any]:
    """Whether it fits, and XLA's words where it does not."""
    return {
        "needed": fit.needed,
        "limit": fit.limit.size,
        "limit_source": fit.limit.source,
        "fits": fit.fits,
        "message": None if fit.fits else exhausted(fit),
    }


def exhausted(fit: Fit) -> str:
    """XLA's error for a program that does not fit."""
    return (
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space default. "
        f"Used {human_bytes(fit.needed)} of {human_bytes(fit.limit.size)} ({fit.limit.source}). "
        f"Exceeded capacity by {human_bytes(fit.missing)}."
    )
