"""All that is known of a module's schedule: what takes how long, what waits, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.latency import LatencyModel, Origin
from hloopt.analysis.latency.statistics import ScheduleStatistics, schedule_statistics
from hloopt.analysis.source_lines import SourceLines
from hloopt.collector import collector_paused
from hloopt.cost_models import CostModelChoice
from hloopt.ir import Computation, Module
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.memory.buffers import Buffers
from hloopt.reports.console.units import CycleUnit
from hloopt.reports.prepared import PreparedModule
from hloopt.reports.schedule.notes import notes_on
from hloopt.reports.schedule.order import ensure_schedule
from hloopt.reports.schedule.run import (
    Preset,
    ScheduleSettings,
    cycle_unit,
    run_module,
    tracker_of,
)
from hloopt.scheduling.graph.edges import BufferHazards
from hloopt.scheduling.memory.pressure import BufferLife
from hloopt.scheduling.memory.profile import usage_over_time
from hloopt.scheduling.times import model_of
from hloopt.simulation import ComputationRun, Simulation
from hloopt.simulation.critical_path import CriticalPaths
from hloopt.simulation.hiding import Hiding, MemoryUse, explain_hiding

if TYPE_CHECKING:
    from hloopt.sharding.origins import Origins

MEMORY_COUNT = "latency-hiding-scheduler"
"""The name of those that count memory so."""
MEMORY_NOTE = (
    f"memory is what {MEMORY_COUNT} counts, values from definition to last use; `hloopt memory` "
    "has what is allocated"
)


@dataclass(slots=True)
class ScheduleMemory:
    """Memory as XLA's latency-hiding scheduler counts it, without arguments of the entry: buffers
    from where they are defined to where they are read last, not what buffer assignment makes."""

    usage: dict[Computation, list[int]]
    """By computation that runs the bytes in use at each position, its callers' included."""
    arguments: int
    """Bytes that the arguments of the entry take in addition."""
    limit: int | None

    @property
    def peak(self) -> int:
        """The most in use at one time, arguments included."""
        return self.arguments + max(max(usage, default=0) for usage in self.usage.values())

    def use_of(self, computation: Computation) -> MemoryUse | None:
        """The memory of a run, against the limit; None without one."""
        if self.limit is None:
            return None
        return MemoryUse(self.usage[computation], self.limit - self.arguments)


@dataclass(slots=True)
class ScheduleFindings:
    """A run of a module by its schedule, and what there is to say of it."""

    order: str
    """`schedule`, or who found one for a module without."""
    preset: Preset
    devices: Grid
    """The devices that the program is for."""
    cost_model: CostModelChoice
    """The origin of times."""
    unit: CycleUnit
    simulation: Simulation
    paths: CriticalPaths
    hidings: list[tuple[ComputationRun, Hiding]]
    """Of every operation; those with most exposed time in one run of the module first."""
    statistics: dict[Computation, ScheduleStatistics]
    """By computation what XLA prints of it. It is not there where XLA's model would count constants
    as times."""
    memory: ScheduleMemory
    lines: SourceLines
    """The line of the program each instruction is from."""
    prepared: PreparedModule
    """The subject of the run, and the limits of its figures."""
    notes: list[str]
    """The assumptions behind the figures, one sentence each."""
    origins: Origins | None = None
    """Origins of collectives by name; None where that was not asked for."""

    @property
    def module(self) -> Module:
        return self.simulation.module

    @classmethod
    def of(
        cls, module: Module, settings: ScheduleSettings, origins: Origins | None = None
    ) -> ScheduleFindings:
        """Run a module and look at it.

        One without a schedule is flattened, gets the copies that XLA inserts, and the order of
        XLA's default memory scheduler. Near-linear in the module. Raises HloError for a bad choice
        of a model, or a module that makes no sense.
        """
        with collector_paused():
            fuses = settings.cost_model.estimates_fusion
            prepared = PreparedModule.of(module, estimates_fusion=fuses)
            module = prepared.module
            order = ensure_schedule(module)
            config = settings.config_for(module)
            tracker = tracker_of(config)
            model = model_of(config, module)
            simulation = run_module(module, settings, config, model)
            flow = Dataflow.of(module)
            buffers = Buffers.of(flow)
            shape_size = shape_bytes if config.preset == "xla-gpu" else leaf_bytes
            life = BufferLife.of(flow, buffers, shape_size)
            memory = _measure_memory(simulation, life, settings.memory_limit)
            hidings = _explain(simulation, memory, BufferHazards(flow, buffers))
            hidings.sort(key=lambda pair: -pair[1].operation.exposed * pair[0].runs)
            statistics = {
                run.computation: schedule_statistics(
                    run.order, model, tracker.is_start, tracker.is_done
                )
                for run in simulation.runs.values()
                if (run.operations or run.computation.is_entry) and are_times(model, run)
            }
            return cls(
                order,
                config.preset,
                device_counts(module),
                config.model_choice,
                cycle_unit(simulation.model),
                simulation,
                CriticalPaths.of(simulation),
                hidings,
                statistics,
                memory,
                SourceLines(simulation.module),
                prepared,
                [*notes_on(simulation, settings), MEMORY_NOTE],
                origins,
            )


def are_times(model: LatencyModel, run: ComputationRun) -> bool:
    """Whether XLA's scheduler is told times, where it is told any, of what it is asked of a run.

    O(instructions), with a target O(operations).
    """
    if model.is_abstract:
        return True
    for operation in run.operations:
        if operation.is_synchronous:
            is_constant = model.node_time(operation.start).origin is Origin.GUESS
        else:
            origin = model.edge_time(operation.start, operation.done).origin
            is_constant = origin in (Origin.CONSTANT, Origin.GUESS)
        if is_constant:
            return False
    return model.target is not None or not any(
        model.node_time(instruction).origin is Origin.GUESS for instruction in run.order
    )


def _measure_memory(simulation: Simulation, life: BufferLife, limit: int | None) -> ScheduleMemory:
    usage = {computation: usage_over_time(life, computation) for computation in simulation.runs}
    parameters = simulation.module.entry.parameters
    return ScheduleMemory(usage, sum(leaf_bytes(p.shape) for p in parameters), limit)


def _explain(
    simulation: Simulation, memory: ScheduleMemory, hazards: BufferHazards
) -> list[tuple[ComputationRun, Hiding]]:
    result = []
    for run in simulation.runs.values():
        dones = [o.done for o in run.operations if not o.is_synchronous]
        edges = [edge for done in dones for edge in hazards.edges(done, [])]
        use = memory.use_of(run.computation)
        result += [(run, hiding) for hiding in explain_hiding(run, hazards=edges, memory=use)]
    return result
