"""Running modules by their schedules: under which model of time, on whose streams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from hloopt.analysis.latency import LatencyModel
from hloopt.analysis.latency.run_times import RunTimes
from hloopt.cost_models import CostModelChoice, latency_model
from hloopt.diagnostics import HloError, counted
from hloopt.ir import Module
from hloopt.memory.backends import GPU, backend_of, common_backend
from hloopt.reports.console.units import CycleUnit
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.gpu_tracker import GpuResourceTracker
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.scheduling.times import model_of
from hloopt.simulation import Loops, Simulation, Streams, simulate
from hloopt.simulation.bandwidth import Bandwidth
from hloopt.targets import Target

Preset: TypeAlias = Literal["xla-generic", "xla-gpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSettings:
    """The settings under which schedules are run."""

    cost_model: CostModelChoice = field(default_factory=CostModelChoice)
    preset: Preset | None = None
    """The preset of streams and limits; None: the module tells."""
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    """All other options of the scheduler: what it says of preset and cost model is not read."""
    loops: Loops = "trips"
    shared_bandwidth: Target | None = None
    """The target whose memory bandwidth is shared; None: nobody slows anybody down."""
    memory_limit: int | None = None
    """Bytes there are."""

    def config_for(self, module: Module) -> SchedulerConfig:
        """The configuration of the scheduler, resolved for a module. Raises HloError."""
        choice = self.cost_model
        return replace(
            self.scheduler,
            preset=self.preset or preset_of(module),
            cost_model=choice.name,
            target=choice.target,
            cost_table=choice.cost_table,
            profile=choice.profile,
            collective_perf_table=choice.collective_perf_table,
            matmul_perf_table=choice.matmul_perf_table,
            smooth_tables=choice.smooth_tables,
        ).resolved(module)


def preset_of(module: Module) -> Preset:
    """The preset whose scheduler a module is for. O(instructions of the entry)."""
    return "xla-gpu" if backend_of(module) is GPU else "xla-generic"


def common_preset(modules: Iterable[Module]) -> Preset:
    """The preset of several versions of one module: XLA:GPU's if that is the backend of one."""
    return "xla-gpu" if common_backend(modules) is GPU else "xla-generic"


def tracker_of(config: SchedulerConfig) -> ResourceTracker:
    """The resource tracker of a configuration: what is asynchronous, and the limits of it."""
    return GpuResourceTracker(config) if config.preset == "xla-gpu" else ResourceTracker(config)


def cycle_unit(model: LatencyModel) -> CycleUnit:
    """The unit of a model in reports: constants by kind of instruction are not times, whatever XLA
    calls them."""
    if model.is_abstract:
        return CycleUnit(None)
    return CycleUnit(1e-6 / model.cycles_per_microsecond)


def run_times(module: Module, choice: CostModelChoice) -> RunTimes:
    """The times of a module's instructions, by the preset that the module tells.

    Raises HloError for a bad target or file of the model of time.
    """
    is_gpu = preset_of(module) == "xla-gpu"
    return RunTimes(latency_model(choice, module, is_gpu=is_gpu), module)


def guessed_share(simulation: Simulation) -> float | None:
    """The part of the time of a run that is guessed, from 0 to 1; None where there are no times."""
    return None if simulation.model.is_abstract else simulation.guessed_share


def run_module(
    module: Module,
    settings: ScheduleSettings,
    config: SchedulerConfig,
    model: LatencyModel | None = None,
) -> Simulation:
    """A run of a module as the settings say, on the streams of a configuration.

    By the times of `model`, else of the configuration, as `RunTimes` has them; but with loops as
    the cost model says, as XLA's scheduler does. Raises HloError for a bad target or file of the
    model of time.
    """
    if model is None:
        model = model_of(config, module)
    if settings.loops != "cost":
        model = RunTimes(model, module)
    bandwidth = None
    if settings.shared_bandwidth is not None:
        bandwidth = Bandwidth(module, settings.shared_bandwidth, model.cycles_per_microsecond)
    streams = Streams(tracker_of(config))
    return simulate(module, model, streams, loops=settings.loops, bandwidth=bandwidth)


def set_devices(module: Module, count: int) -> None:
    """Let a module run on `count` devices: more or fewer partitions. Raises HloError."""
    if count % module.replica_count:
        raise HloError(
            f"{counted(count, 'device is', 'devices are')} no multiple of the module's "
            f"{counted(module.replica_count, 'replica')}"
        )
    module.set_attribute("num_partitions", str(count // module.replica_count))
