"""One recorded module: the schedule that the search finds beside XLA's."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

from hloopt.ir import Module
from hloopt.memory.analysis import analyze_memory
from hloopt.memory.backends import GPU
from hloopt.pass_framework.base import PassContext
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.search_options import SearchOptions
from schedule_lib.comparison import figures_of, prepare

SETTING = "base"
"""The recorded setting: XLA:GPU's defaults."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A schedule of a module, times in microseconds; each computation counts once."""

    exposed: float
    """Waiting for collectives: XLA's wasted cycles."""
    total: float
    peak: int
    """Bytes by the scheduler's account."""
    allocated_peak: int
    """Bytes as buffers are assigned: what `hloopt memory` says."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """XLA's figures and ours."""

    module: str
    instructions: int
    """In scheduled computations."""
    xla: Figures
    ours: Figures
    tried: int
    seconds: float
    """Of processor time: under load fewer than the budget."""

    @property
    def ratio(self) -> float:
        return self.ours.exposed / self.xla.exposed if self.xla.exposed else 1.0

    @property
    def is_no_worse(self) -> bool:
        """Whether nothing is worse than in XLA's schedule, to the six digits that it prints."""
        return (
            self.ours.exposed <= self.xla.exposed * (1 + 1e-5)
            and self.ours.total <= self.xla.total * (1 + 1e-5)
            and self.ours.peak <= self.xla.peak
        )


def search_recorded(sweep: Path, search: SearchOptions) -> SearchResult:
    """Search a schedule of a recorded module, with XLA's costs and limits."""
    record = json.loads((sweep / f"{SETTING}.json").read_text())["after_sum"]
    plain = prepare(sweep, SETTING)
    schedule_and_report(plain, PassContext())
    xla = Figures(
        record["total_wasted"],
        record["total_cycles"],
        record["memory_pressure_peak"],
        _allocated_peak(plain.module),
    )
    scheduling = prepare(sweep, SETTING)
    scheduling.scheduler.config = replace(scheduling.scheduler.config, search=search)
    context = PassContext()
    begin = time.process_time()
    schedule_and_report(scheduling, context)
    seconds = time.process_time() - begin
    found = figures_of(scheduling).values()
    ours = Figures(
        sum(figures.statistics.total_wasted for figures in found),
        sum(figures.statistics.total_cycles for figures in found),
        max(figures.peak for figures in found),
        _allocated_peak(scheduling.module),
    )
    count = sum(len(computation) for computation in scheduling.computations())
    tried = context.statistics["orders tried"]
    return SearchResult(sweep.parent.name, count, xla, ours, tried, seconds)


def _allocated_peak(module: Module) -> int:
    return analyze_memory(module, backend=GPU).peak
