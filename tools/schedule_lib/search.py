"""One recorded module: the schedule that the search finds beside XLA's."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.runs import ONCE, count_runs
from hloopt.analysis.latency.statistics import host_waiting
from hloopt.ir import Module
from hloopt.memory.analysis import analyze_memory
from hloopt.memory.backends import GPU
from hloopt.pass_framework.base import PassContext
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.search_options import SearchOptions
from schedule_lib.comparison import figures_of, prepare

_ROUNDING = 1 + 1e-3
SETTING = "base"
"""The recorded setting: XLA:GPU's defaults."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A schedule of a module, times in microseconds; a computation counts as often as it runs."""

    exposed: float
    """Waiting for collectives: XLA's wasted cycles."""
    host: float
    """Waiting for copies to and from the host."""
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
            and self.ours.allocated_peak <= self.xla.allocated_peak * _ROUNDING
        )


def search_recorded(sweep: Path, search: SearchOptions) -> SearchResult:
    """Search a schedule of a recorded module, with XLA's costs and limits.

    XLA's schedule is the one that we make with its rules: `make schedule-agreement` compares it
    with the recorded one.
    """
    plain = prepare(sweep, SETTING)
    schedule_and_report(plain, PassContext())
    scheduling = prepare(sweep, SETTING)
    scheduling.scheduler.config = replace(scheduling.scheduler.config, search=search)
    context = PassContext()
    begin = time.process_time()
    schedule_and_report(scheduling, context)
    seconds = time.process_time() - begin
    count = sum(len(computation) for computation in scheduling.computations())
    tried = context.statistics["orders tried"]
    return SearchResult(
        sweep.parent.name, count, _figures(plain), _figures(scheduling), tried, seconds
    )


def _figures(scheduling: ModuleScheduling) -> Figures:
    module = scheduling.module
    runs = count_runs(module, CostAnalysis(module))
    found = figures_of(scheduling)
    times = {name: runs.get(module.computations[name], ONCE).times for name in found}
    return Figures(
        sum(f.statistics.total_wasted * times[name] for name, f in found.items()),
        sum(host_waiting(f.statistics) * times[name] for name, f in found.items()),
        sum(f.statistics.total_cycles * times[name] for name, f in found.items()),
        max(figures.peak for figures in found.values()),
        _allocated_peak(module),
    )


def _allocated_peak(module: Module) -> int:
    return analyze_memory(module, backend=GPU).peak
