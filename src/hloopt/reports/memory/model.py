"""All that is known of a module's memory, as plain data: JSON, pages and traces are made of it."""

from __future__ import annotations

from collections.abc import Iterable
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
    from hloopt.cost_models import CostModelChoice
    from hloopt.memory.advice.model import Advice
    from hloopt.reports.memory.move_times import MoveTimes
    from hloopt.targets import Target


@dataclass
class MemoryFindings:
    """The use of one memory space by a module: the report, whether it fits, and what would help."""

    prepared: PreparedModule
    analysis: MemoryAnalysis
    report: MemoryReport
    limits: tuple[MemoryLimit, ...]
    """At most one for each memory space."""
    fits: tuple[Fit, ...]
    """One for each limit; empty where the report's doubts allow no verdict."""
    advice: Advice | None
    """None where nobody asked, and for another memory space than main memory."""
    move_times: MoveTimes | None
    """None where nothing moves to or from the memory space, without a cost model, and without a
    schedule."""

    @classmethod
    def of(
        cls,
        module: Module,
        target: Target | None,
        *,
        backend: Backend | None = None,
        space: int = 0,
        limits: Iterable[MemoryLimit] = (),
        wants_advice: bool | None = None,
        cost_model: CostModelChoice | None = None,
    ) -> MemoryFindings:
        """Analyze a module and look at one memory space.

        Times of advice are those of `target`, times of moves those of `cost_model`; without them
        there are none. `wants_advice` None stands for: if it does not fit. Near-linear.
        """
        with collector_paused():
            prepared, analysis, report = _measure(module, backend, space)
        limits = tuple(limits)
        fits = () if report.doubts else tuple(_fit(analysis, report, limit) for limit in limits)
        found = cls(prepared, analysis, report, limits, fits, None, None)
        if wants_advice is None:
            wants_advice = found.fit is not None and not found.fit.fits
        if wants_advice and not space:
            from hloopt.memory.advice import advise

            limit = None if found.limit is None else found.limit.size
            found.advice = advise(analysis, report, target, limit)
        if cost_model is not None and len(report.spaces) > 1:
            from hloopt.reports.memory.move_times import move_times

            found.move_times = move_times(prepared.module, cost_model, space)
        return found

    @property
    def limit(self) -> MemoryLimit | None:
        """The limit of the memory space."""
        return next((limit for limit in self.limits if limit.space == self.analysis.space), None)

    @property
    def fit(self) -> Fit | None:
        """Whether it fits into the memory space; None without a limit, and where doubts allow no
        verdict."""
        space = self.analysis.space
        return next((fit for fit in self.fits if fit.limit.space == space), None)

    @property
    def no_verdict(self) -> str | None:
        """The reason why there is no word on a limit that was given; None where there is one, or no
        limit."""
        if not self.limits or self.fits:
            return None
        name = self.analysis.assignment.backend.space_name
        is_one = len(self.limits) == 1
        against = " and ".join(
            f"{'' if is_one else name(each.space) + ' '}{human_bytes(each.size)} ({each.source})"
            for each in self.limits
        )
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
            "fits": [fit_to_json(fit) for fit in self.fits],
            "move_times": None if self.move_times is None else asdict(self.move_times),
            "no_verdict": self.no_verdict,
            "advice": None if self.advice is None else asdict(self.advice),
        }


def memory_report(module: Module, *, backend: Backend | None = None) -> MemoryReport:
    """The memory of a module, flattened and with copies inserted where that is yet to be done.

    Near-linear in the module. Raises HloError for a module whose shapes or calls make no sense.
    """
    with collector_paused():
        return _measure(module, backend, 0)[2]


def alive_at_peak(module: Module) -> frozenset[str]:
    """The names of the instructions whose values are alive at the peak.

    Near-linear. Raises HloError as `memory_report`.
    """
    with collector_paused():
        backend = backend_of(module)
        prepared = PreparedModule.of(module, backend=backend)
        analysis = MemoryAnalysis.of(prepared.module, backend=backend, packs=False)
        return analysis.alive_at_peak()


def _measure(
    module: Module, backend: Backend | None, space: int
) -> tuple[PreparedModule, MemoryAnalysis, MemoryReport]:
    own = backend_of(module)
    backend = backend or own
    prepared = PreparedModule.of(module, backend=backend)
    analysis = MemoryAnalysis.of(prepared.module, backend=backend, space=space)
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


def _fit(analysis: MemoryAnalysis, report: MemoryReport, limit: MemoryLimit) -> Fit:
    backend, space = analysis.assignment.backend, limit.space
    needed = sum(needed_bytes(use.statistics) for use in report.spaces if use.number == space)
    return Fit(needed, limit, backend.space_name(space).lower() if space else "default")


def fit_to_json(fit: Fit) -> dict[str, Any]:
    """Whether it fits, and XLA's words where it does not."""
    return {
        "space": fit.limit.space,
        "space_name": fit.space_name,
        "needed": fit.needed,
        "limit": fit.limit.size,
        "limit_source": fit.limit.source,
        "fits": fit.fits,
        "message": None if fit.fits else exhausted(fit),
    }


def exhausted(fit: Fit) -> str:
    """XLA's error for a program that does not fit."""
    return (
        f"RESOURCE_EXHAUSTED: Ran out of memory in memory space {fit.space_name}. "
        f"Used {human_bytes(fit.needed)} of {human_bytes(fit.limit.size)} ({fit.limit.source}). "
        f"Exceeded capacity by {human_bytes(fit.missing)}."
    )
