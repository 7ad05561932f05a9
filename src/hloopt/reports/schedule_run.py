"""Running modules by their schedules: under which model of time, on whose streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hloopt.cost_models import CostModelChoice, latency_model
from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.memory.backends import GPU, backend_of
from hloopt.passes.latency_hiding_scheduler.config import SchedulerConfig
from hloopt.passes.latency_hiding_scheduler.gpu_resources import GpuResourceTracker
from hloopt.passes.latency_hiding_scheduler.resources import ResourceTracker
from hloopt.reports.units import CycleUnit
from hloopt.simulation import Loops, Simulation, Streams, simulate
from hloopt.simulation.bandwidth import Bandwidth
from hloopt.targets import Target

Preset: TypeAlias = Literal["xla-generic", "xla-gpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSettings:
    """How to look at schedules."""

    cost_model: CostModelChoice = field(default_factory=CostModelChoice)
    preset: Preset | None = None
    """Whose streams and limits; None: the module tells."""
    loops: Loops = "trips"
    shared_bandwidth: Target | None = None
    """The target whose memory bandwidth is shared; None: nobody slows anybody down."""
    memory_limit: int | None = None
    """Bytes there are."""


def preset_of(module: Module) -> Preset:
    """Whose scheduler a module is for. O(instructions of the entry)."""
    return "xla-gpu" if backend_of(module) is GPU else "xla-generic"


def tracker_of(preset: Preset) -> ResourceTracker:
    """What is asynchronous by a preset, and its default limits."""
    config = SchedulerConfig(preset=preset).resolved()
    return GpuResourceTracker(config) if preset == "xla-gpu" else ResourceTracker(config)


def cycle_unit(settings: ScheduleSettings, simulation: Simulation) -> CycleUnit:
    """Constants by kind of instruction are no times, whatever XLA calls them."""
    if settings.cost_model.resolved() == "fixed":
        return CycleUnit(None)
    return CycleUnit(1e-6 / simulation.model.cycles_per_microsecond)


def run_module(module: Module, settings: ScheduleSettings, tracker: ResourceTracker) -> Simulation:
    """A run of a module as the settings say. Raises HloError for a bad choice of a model."""
    is_gpu = isinstance(tracker, GpuResourceTracker)
    model = latency_model(settings.cost_model, module, is_gpu=is_gpu)
    bandwidth = None
    if settings.shared_bandwidth is not None:
        bandwidth = Bandwidth(module, settings.shared_bandwidth, model.cycles_per_microsecond)
    return simulate(module, model, Streams(tracker), loops=settings.loops, bandwidth=bandwidth)


def set_devices(module: Module, count: int) -> None:
    """Let a module run on `count` devices: more or fewer partitions. Raises HloError."""
    if count % module.replica_count:
        raise HloError(
            f"{count} devices are no multiple of the module's {module.replica_count} replicas"
        )
    module.set_attribute("num_partitions", str(count // module.replica_count))
