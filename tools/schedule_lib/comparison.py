"""One recorded module under one setting: XLA's result beside ours."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hloopt.analysis.latency import CostTable, GpuFixedModel, LatencyModel, TableModel
from hloopt.analysis.latency.statistics import ScheduleStatistics, schedule_statistics
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.text import parse_module


@dataclass(slots=True)
class Result:
    """The outcome of one setting."""

    module: str
    setting: str
    is_fixed: bool
    """Whether costs were the constants of the fixed-size estimator."""
    seconds: float = 0.0
    computations: int = 0
    same_orders: int = 0
    figures: int = 0
    same_figures: int = 0
    near_figures: int = 0
    """Statistics within half a per cent."""
    differences: list[str] = field(default_factory=list)

    def compare_figure(self, what: str, ours: float, theirs: float) -> None:
        self.figures += 1
        scale = max(abs(theirs), 1e-9)
        self.same_figures += abs(ours - theirs) <= 1e-5 * scale
        is_near = abs(ours - theirs) <= 5e-3 * scale
        self.near_figures += is_near
        if not is_near:
            self.differences.append(f"{what} {ours:.6g}, XLA {theirs:.6g}")


def settings_of(sweep: Path) -> Iterator[str]:
    """The settings recorded for a module that we can be asked for."""
    for path in sorted(sweep.glob("*.order.json.gz")):
        yield path.name.removesuffix(".order.json.gz")


def compare_setting(sweep: Path, setting: str) -> Result:
    """Schedule the module of a sweep as the setting says, and compare."""
    record = json.loads((sweep / f"{setting}.json").read_text())
    orders: dict[str, list[str]] = _packed_json(sweep / f"{setting}.order.json.gz")
    result = Result(sweep.parent.name, setting, setting.startswith("sol_off"))
    scheduling = prepare(sweep, setting)
    begin = time.perf_counter()
    schedule_and_report(scheduling, PassContext())
    result.seconds = time.perf_counter() - begin
    _compare_orders(scheduling.module, orders, result)
    _compare_statistics(scheduling, record, result)
    return result


def prepare(sweep: Path, setting: str) -> ModuleScheduling:
    """The module of a sweep, to be scheduled as the setting says."""
    record = json.loads((sweep / f"{setting}.json").read_text())
    with gzip.open(sweep / "before_lhs.hlo.gz", "rt") as file:
        module = parse_module(file.read())
    model: LatencyModel = GpuFixedModel()
    if not setting.startswith("sol_off"):
        table = _packed_json(sweep / "costs.json.gz")
        model = TableModel(CostTable(table["node"], table["latency"]), model)
    return ModuleScheduling.of(module, _config(record).resolved(), model)


def _packed_json(path: Path) -> Any:
    with gzip.open(path, "rt") as file:
        return json.load(file)


def _config(record: dict[str, Any]) -> SchedulerConfig:
    settings = record["settings"]
    return SchedulerConfig(
        preset="xla-gpu",
        separate_memcpy_stream=False,  # the records are of jaxlib 0.10.2
        memory_limit=record["memory_limit"],
        parallel_collective_overlap_limit=settings["parallel_collective_overlap_limit"],
        parallel_async_compute_limit=settings["parallel_async_compute_limit"],
        collective_start_as_early_as_possible=settings["collective_start_as_early_as_possible"],
        enable_collective_multi_streaming=settings["collective_multi_streaming"],
    )


def _compare_orders(module: Module, orders: dict[str, list[str]], result: Result) -> None:
    for name, theirs in orders.items():
        result.computations += 1
        ours = [i.name for i in module.computations[name].instructions]
        if ours == theirs:
            result.same_orders += 1
            continue
        differing = sum(a != b for a, b in zip(ours, theirs, strict=True))
        last = max(p for p in range(len(ours)) if ours[p] != theirs[p])
        result.differences.append(
            f"%{name}: {differing} of {len(ours)} elsewhere, from the end first "
            f"%{ours[last]}, XLA %{theirs[last]}"
        )


def _compare_statistics(
    scheduling: ModuleScheduling, record: dict[str, Any], result: Result
) -> None:
    result.compare_figure("module peak", scheduling.scheduler.life.peak, record["memory_usage"])
    found = figures_of(scheduling)
    for theirs in record["after"]:
        ours = found[theirs["computation"]]
        result.compare_figure("cycles", ours.statistics.total_cycles, theirs["total_cycles"])
        result.compare_figure("wasted", ours.statistics.total_wasted, theirs["total_wasted"])
        result.compare_figure("peak", ours.peak, theirs["memory_pressure_peak"])


class ComputationFigures(NamedTuple):
    """XLA's report of a scheduled computation."""

    statistics: ScheduleStatistics
    peak: int


def figures_of(scheduling: ModuleScheduling) -> dict[str, ComputationFigures]:
    """By name of the scheduled computations, what XLA would report of their present orders."""
    tracker, life = scheduling.scheduler.tracker, scheduling.scheduler.life
    model = scheduling.scheduler.model
    life.restart()
    found: dict[str, ComputationFigures] = {}
    for computation in scheduling.computations():
        statistics = schedule_statistics(
            list(computation.instructions), model, tracker.is_start, tracker.is_done
        )
        state = life.states[computation]
        initial = sum(life.size[buffer] for buffer in state.live_below)
        found[computation.name] = ComputationFigures(statistics, initial + state.peak)
    return found
