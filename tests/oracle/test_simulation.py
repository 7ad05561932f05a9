"""Runs of modules that XLA:GPU scheduled: its own figures of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hloopt.analysis.latency import CostTable, GpuFixedModel, TableModel
from hloopt.files import read_module
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.run import ScheduleSettings, tracker_of
from hloopt.scheduling.config import SchedulerConfig
from hloopt.simulation import Streams, simulate

pytestmark = [pytest.mark.slow]


def recorded(shared: Path) -> list[Path]:
    """Folders with the schedule that XLA made, what it said of it, and the costs it took."""
    folders = sorted((shared / "oracle" / "gpu").glob("*"))
    return [
        folder
        for folder in folders
        if (folder / "default" / "lhs.json").exists()
        and (folder / "default" / "after_lhs.hlo.gz").exists()
        and (folder / "sweep" / "costs.json.gz").exists()
    ]


def test_times_and_memory_are_those_xla_reports(shared: Path) -> None:
    compared = 0
    different = []
    for folder in recorded(shared):
        record = json.loads((folder / "default" / "lhs.json").read_text())
        if record["estimator"] != "sol":
            continue
        module = read_module(str(folder / "default" / "after_lhs.hlo.gz"))
        with gzip.open(folder / "sweep" / "costs.json.gz", "rt") as file:
            costs = json.load(file)
        model = TableModel(CostTable(costs["node"], costs["latency"]), GpuFixedModel())
        config = SchedulerConfig(preset="xla-gpu").resolved()
        streams = Streams(tracker_of(config), is_limited=False)
        simulation = simulate(module, model, streams, loops="cost")
        memory = ScheduleFindings.of(module, ScheduleSettings(preset="xla-gpu")).memory
        for theirs in record["after"]:
            computation = module.computations[theirs["computation"]]
            run = simulation.runs[computation]
            compared += 1
            # XLA cuts off what is after the point of the time of a start.
            slack = len(run.operations) + 1e-5 * theirs["total_cycles"]
            if abs(run.duration - theirs["total_cycles"]) > slack:
                different.append(f"{folder.name} {computation.name}: {run.duration}")
            if max(memory.usage[computation]) != theirs["memory_pressure_peak"]:
                different.append(f"{folder.name} {computation.name}: memory")
    assert compared
    assert different == []
