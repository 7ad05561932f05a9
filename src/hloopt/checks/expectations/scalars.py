"""The groups of single figures: memory, cost, schedule, replication, module."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hloopt.checks.doubts import (
    bytes_doubt,
    flops_doubt,
    memory_doubt,
    not_partitioned,
    schedule_doubt,
)
from hloopt.checks.expectations.model import Group, Scalar
from hloopt.checks.expectations.units import BYTES, COUNT, SHARE, TIME
from hloopt.checks.view import View
from hloopt.ir.instruction import Instruction
from hloopt.memory.limit import needed_bytes
from hloopt.memory.statistics import MemoryStatistics
from hloopt.reports.schedule.run import guessed_share

# -- memory ---------------------------------------------------------------------------------------


def _live(view: View) -> list[Instruction]:
    """The instructions whose values are alive at the peak, the largest first."""
    by_name = view.once("names", lambda: _instructions_by_name(view))
    found: dict[Instruction, None] = {}
    for buffer in view.subject.memory.report.live_at_peak:
        key = buffer.computation, buffer.name.partition("{")[0]
        if key in by_name:
            found[by_name[key]] = None
    return list(found)


def _instructions_by_name(view: View) -> dict[tuple[str, str], Instruction]:
    module = view.subject.module
    return {(each.parent.name, each.name): each for each in module.instructions()}


def _memory(name: str, doc: str, read: Callable[[MemoryStatistics], int]) -> Scalar:
    return Scalar(
        name, doc, BYTES, lambda view: read(view.subject.memory.report.statistics), memory_doubt,
        places=_live,
    )  # fmt: skip


MEMORY = Group(
    "memory",
    "memory of one device, as `hloopt memory` has it",
    (
        _memory("peak", "the most in use at one time: XLA's peak_memory_in_bytes",
                lambda each: each.peak_memory),
        _memory("needed", "what a device must have: arguments, outputs, temporaries, constants",
                needed_bytes),
        _memory("temporaries", "temporaries as they are packed: XLA's temp_size_in_bytes",
                lambda each: each.device.temp),
        _memory("arguments", "arguments, donated ones among them",
                lambda each: each.device.argument),
        _memory("outputs", "outputs, those in donated arguments among them",
                lambda each: each.device.output),
        _memory("aliased", "donated arguments that an output reuses",
                lambda each: each.device.alias),
        _memory("constants", "constants", lambda each: each.constant),
        _memory("fragmentation", "heaps of temporaries beyond what is alive at their fullest",
                lambda each: each.fragmentation),
        _memory("host_temporaries", "temporaries in host memory, S(5)",
                lambda each: each.host.temp),
        _memory("host_arguments", "arguments in host memory", lambda each: each.host.argument),
        _memory("host_outputs", "outputs in host memory", lambda each: each.host.output),
    ),
)  # fmt: skip

# -- cost -----------------------------------------------------------------------------------------

COST = Group(
    "cost",
    "arithmetic and memory traffic of one run, as `hloopt cost` has them",
    (
        Scalar("flops", "floating-point and other operations on elements", COUNT,
               lambda view: view.subject.costs.module().flops, flops_doubt),
        Scalar("transcendentals", "exp, log, tanh and the like", COUNT,
               lambda view: view.subject.costs.module().transcendentals, flops_doubt),
        Scalar("bytes", "bytes between memory and the processor, either way", BYTES,
               lambda view: view.subject.costs.module().bytes_accessed, bytes_doubt),
        Scalar("bytes_read", "bytes read from memory", BYTES,
               lambda view: view.subject.costs.module().bytes_read, bytes_doubt),
        Scalar("bytes_written", "bytes written to memory", BYTES,
               lambda view: view.subject.costs.module().bytes_written, bytes_doubt),
    ),
)  # fmt: skip

# -- schedule -------------------------------------------------------------------------------------


def _seconds(view: View, cycles: float) -> float:
    """A time by the model; of a model without times there is no verdict anyway."""
    return cycles * (view.schedule.unit.seconds or 0.0)


def _makespan(view: View) -> float:
    return _seconds(view, view.schedule.simulation.makespan)


def _exposed_operations(view: View) -> Sequence[Instruction]:
    return [
        hiding.operation.start for _, hiding in view.schedule.hidings if hiding.operation.exposed
    ]


SCHEDULE = Group(
    "schedule",
    "one run by the schedule and a cost model, as `hloopt schedule` has it",
    (
        Scalar("exposed", "time that the main stream waits for operations; a share is of makespan",
               TIME, lambda view: _seconds(view, view.schedule.simulation.exposed),
               schedule_doubt, _makespan, _exposed_operations),
        Scalar("makespan", "time from the first instruction to the last", TIME, _makespan,
               schedule_doubt),
        Scalar("critical_path", "time of the longest chain of dependences; a share is of makespan",
               TIME,
               lambda view: _seconds(view, view.schedule.paths.lengths[view.schedule.module.entry]),
               schedule_doubt, _makespan),
        Scalar("guessed", "the part of all times that is guessed", SHARE,
               lambda view: guessed_share(view.schedule.simulation) or 0.0,
               lambda view: schedule_doubt(view.trusting()),
               places=lambda view: view.schedule.simulation.guessed),
    ),
    ("target", "cost_model"),
)  # fmt: skip

# -- module ---------------------------------------------------------------------------------------

MODULE = Group(
    "module",
    "the module as it is written",
    (
        Scalar("instructions", "instructions of all computations", COUNT,
               lambda view: sum(1 for _ in view.subject.module.instructions())),
        Scalar("computations", "computations", COUNT,
               lambda view: len(view.subject.module.computations)),
        Scalar("devices", "replicas times partitions that it is for", COUNT,
               lambda view: view.subject.stage.devices),
    ),
)  # fmt: skip

REPLICATION = Group(
    "replication",
    "work that partitions, or replicas, all do alike, as `hloopt analyze replication` has it",
    (
        Scalar("flops", "the part of all flops that every device computes alike", SHARE,
               lambda view: _redundant(view, "flops"), not_partitioned),
        Scalar("bytes", "the part of all bytes that every device moves alike", SHARE,
               lambda view: _redundant(view, "bytes_accessed"), not_partitioned),
    ),
)  # fmt: skip


def _redundant(view: View, what: str) -> float:
    """The largest share along an axis; 0 for one device."""
    shares = [
        getattr(report.on_all, what) / max(getattr(report.total, what), 1)
        for report in view.subject.replication
    ]
    return max(shares, default=0.0)
