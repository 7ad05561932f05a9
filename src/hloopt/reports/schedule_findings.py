"""All that is known of a module's schedule: what takes how long, what waits, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from hloopt.analysis.async_operations import SYNC_COLLECTIVES
from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.latency import Origin
from hloopt.analysis.latency.statistics import ScheduleStatistics, schedule_statistics
from hloopt.collector import collector_paused
from hloopt.ir import Computation, Instruction, Module
from hloopt.ir.device_counts import device_counts
from hloopt.ir.grid import Grid
from hloopt.ir.opcode import STARTS
from hloopt.ir.schedule import set_schedule
from hloopt.ir.shape_size import shape_bytes
from hloopt.memory.backends import backend_of
from hloopt.memory.buffers import Buffers
from hloopt.memory.schedulers import schedule_module
from hloopt.passes.latency_hiding_scheduler.edges import BufferHazards
from hloopt.passes.latency_hiding_scheduler.pressure import BufferLife, leaf_bytes
from hloopt.passes.latency_hiding_scheduler.pressure_profile import usage_over_time
from hloopt.reports.schedule_run import (
    Preset,
    ScheduleSettings,
    cycle_unit,
    run_module,
    tracker_of,
)
from hloopt.reports.units import CycleUnit, some
from hloopt.simulation import ComputationRun, Simulation
from hloopt.simulation.critical_path import CriticalPaths
from hloopt.simulation.hiding import Hiding, MemoryUse, explain_hiding


@dataclass(slots=True)
class ScheduleMemory:
    """Memory as the latency-hiding scheduler of XLA reckons: without arguments of the entry."""

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
        """What a run uses, against the limit; None without one."""
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
    unit: CycleUnit
    simulation: Simulation
    paths: CriticalPaths
    hidings: list[tuple[ComputationRun, Hiding]]
    """Of every operation; those with most exposed time in one run of the module first."""
    statistics: dict[Computation, ScheduleStatistics]
    """By computation what XLA prints of it."""
    memory: ScheduleMemory
    notes: list[str]
    """What the figures rest on, one sentence each."""

    @property
    def module(self) -> Module:
        return self.simulation.module

    @classmethod
    def of(cls, module: Module, settings: ScheduleSettings) -> ScheduleFindings:
        """Run a module and look at it.

        One without a schedule gets that of XLA's default memory scheduler. Near-linear in the
        module. Raises HloError for a bad choice of a model, or a module that makes no sense.
        """
        with collector_paused():
            order = ensure_schedule(module)
            config = settings.config_for(module)
            tracker = tracker_of(config)
            simulation = run_module(module, settings, config)
            flow = Dataflow.of(module)
            buffers = Buffers.of(flow)
            shape_size = shape_bytes if config.preset == "xla-gpu" else leaf_bytes
            life = BufferLife.of(flow, buffers, shape_size)
            memory = _measure_memory(simulation, life, settings.memory_limit)
            hidings = _explain(simulation, memory, BufferHazards(flow, buffers))
            hidings.sort(key=lambda pair: -pair[1].operation.exposed * pair[0].runs)
            statistics = {
                run.computation: schedule_statistics(
                    run.order, simulation.model, tracker.is_start, tracker.is_done
                )
                for run in simulation.runs.values()
                if run.operations or run.computation.is_entry
            }
            return cls(
                order,
                config.preset,
                device_counts(module),
                cycle_unit(config, simulation.model),
                simulation,
                CriticalPaths.of(simulation),
                hidings,
                statistics,
                memory,
                _notes(simulation, settings),
            )


def ensure_schedule(module: Module) -> str:
    """Give a module without a schedule that of XLA's default memory scheduler.

    Who made the order, for people: `schedule` where there was one.
    """
    if module.is_scheduled:
        return "schedule"
    schedule = schedule_module(module, backend=backend_of(module))
    set_schedule(module, schedule.orders)
    return f"{schedule.algorithm} (the module is not scheduled)"


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


# -- notes ----------------------------------------------------------------------------------------


def _notes(simulation: Simulation, settings: ScheduleSettings) -> list[str]:
    notes = []
    if settings.cost_model.resolved() == "fixed":
        notes.append(
            "times are XLA's constants by kind of instruction, in abstract cycles: they tell what "
            "overlaps, not how long it takes"
        )
    choice = settings.cost_model
    file = choice.cost_table or choice.profile
    if file is not None and not _any_from_file(simulation):
        notes.append(f"{file} knows no instruction that runs here: is it about another module?")
    guessed = dict.fromkeys(simulation.guessed)
    if guessed:
        notes.append(
            "the model does not know how long these take, a constant stands in: " + _names(guessed)
        )
    if simulation.unknown_loops:
        notes.append(
            "loops whose trip count is not known take one trip: " + _names(simulation.unknown_loops)
        )
    if settings.loops == "once":
        notes.append("loops take one trip")
    unpaired = [instruction for run in simulation.runs.values() for instruction in run.unpaired]
    if unpaired:
        notes.append(
            "nothing is said of operations that start in one trip or computation and are done in "
            f"another: {_names(unpaired)}"
        )
    if in_main := _in_main_stream(simulation):
        notes.append(
            "these are not asynchronous here, and hold up the main stream for what the model says "
            f"of any instruction: {_names(in_main)}"
        )
    if settings.shared_bandwidth is not None:
        notes.append(
            "what runs at the same time shares the memory bandwidth of "
            f"{settings.shared_bandwidth.title}"
        )
    return notes


def _any_from_file(simulation: Simulation) -> bool:
    """Whether any time is that of a table or profile. Linear in what runs if none is."""
    model = simulation.model
    nodes = (model.node_time(i) for run in simulation.runs.values() for i in run.order)
    pairs = (model.edge_time(o.start, o.done) for _, o in simulation.operations())
    return any(time.origin in (Origin.TABLE, Origin.PROFILE) for time in chain(nodes, pairs))


def _in_main_stream(simulation: Simulation) -> list[Instruction]:
    """Collectives and starts that run in the main stream like other work."""
    beside = {operation.start for _, operation in simulation.operations()}
    for run in simulation.runs.values():
        beside.update(run.unpaired)
    return [
        instruction
        for run in simulation.runs.values()
        if run.runs
        for instruction in run.order
        if (instruction.opcode in SYNC_COLLECTIVES or instruction.opcode in STARTS)
        and instruction not in beside
    ]


def _names(instructions: Iterable[Instruction]) -> str:
    return some([f"%{instruction.name}" for instruction in instructions])
