"""The time and memory of a program after decisions, by the simulator and by buffer assignment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hloopt.analysis.latency.run_times import RunTimes
from hloopt.ir.attributes.frontend_attributes import frontend_attributes, set_frontend_attributes
from hloopt.ir.clone import clone_module
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.memory.analysis import analyze_memory
from hloopt.memory.backends import GPU
from hloopt.passes.overlap.decisions import Decision, Draft, run_passes
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.gpu_tracker import GpuResourceTracker
from hloopt.scheduling.times import model_of
from hloopt.simulation import Simulation, Streams, simulate

_SITE = "hloopt.collective"
"""The frontend attribute that says which collective a start is of, while it is judged."""

_ASYNCHRONOUS: Mapping[str, object] = {
    f"convert_{kind}": True
    for kind in (
        *("all_reduce", "all_gather", "collective_broadcast", "collective_permute"),
        *("all_to_all", "reduce_scatter", "ragged_all_to_all"),
    )
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A program as it runs after decisions."""

    draft: Draft
    module: Module
    """Scheduled, collectives asynchronous."""
    seconds: float
    exposed: float
    """Seconds of waiting."""
    peak: int
    """Bytes."""
    waits: Mapping[str, float] = field(repr=False)
    """By collective of the draft the seconds of waiting for it, all runs together."""

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return self.draft.decisions


@dataclass(slots=True)
class Judge:
    """Finishes drafts and judges them. Near-linear in the module."""

    options: OverlapOptions

    def finish(self, draft: Draft, *, moves: int = 0) -> Judged:
        """Make collectives asynchronous, insert copies and schedule, as XLA:GPU does.

        The order of the scheduler is then searched for that many `moves`.
        """
        module, _ = clone_module(draft.module)
        _mark(module)
        run_passes(module, self._passes(moves))
        return self.judge(draft, module)

    def judge(self, draft: Draft, module: Module) -> Judged:
        """Judge a scheduled module that is made of a draft; its marks are removed."""
        config = self._config().resolved(module)
        model = model_of(config, module)
        times = RunTimes(model, module)
        run = simulate(module, times, Streams(GpuResourceTracker(config)), loops="trips")
        second = times.cycles_per_microsecond * 1e6
        waits = _waits(run, second)
        _unmark(module)
        peak = analyze_memory(module, backend=GPU).statistics.peak_memory
        return Judged(draft, module, run.makespan / second, run.exposed / second, peak, waits)

    def _config(self) -> SchedulerConfig:
        options = self.options
        return SchedulerConfig(
            preset="xla-gpu",
            target=options.target,
            cost_model=options.cost_model,
            parallel_collective_overlap_limit=options.overlap_limit,
        )

    def _passes(self, moves: int) -> list[str | tuple[str, dict[str, object]]]:
        options = self.options
        scheduler: dict[str, object] = {
            "preset": "xla-gpu",
            "target": options.target,
            "cost_model": options.cost_model,
            "parallel_collective_overlap_limit": options.overlap_limit,
            "parallel_async_compute_limit": 2,
        }
        if options.memory_limit is not None:
            scheduler["device_memory_size"] = options.memory_limit
        if moves:
            scheduler["search"] = {"iterations": moves, "seed": options.seed}
        return [
            *("host-compute-asyncifier", "host-memory-transfer-asyncifier"),
            ("async-collective-creator", dict(_ASYNCHRONOUS)),
            ("async-collective-annotator", {"disable_async_collectives": []}),
            "async-stream-attribute-wrapper",
            "explicit-stream-annotation-async-wrapper",
            "explicit-collectives-group-async-wrapper",
            "flatten-call-graph",
            ("copy-insertion", {"alias_info": "gpu"}),
            ("hlo-memory-scheduler", {"preset": "xla-gpu"}),
            ("legalize-scheduling-annotations", {"keep_sync_annotation": "gpu-gemms"}),
            ("latency-hiding-scheduler", scheduler),
            "gpu-convert-async-collectives-to-sync",
        ]


def _mark(module: Module) -> None:
    for instruction in module.instructions():
        if instruction.opcode in COLLECTIVES:
            notes = {**frontend_attributes(instruction), _SITE: instruction.name}
            set_frontend_attributes(instruction, notes)


def _unmark(module: Module) -> None:
    for instruction in module.instructions():
        if _SITE in instruction.attributes.get("frontend_attributes", ""):
            notes = frontend_attributes(instruction)
            notes.pop(_SITE, None)
            set_frontend_attributes(instruction, notes)


def _waits(run: Simulation, second: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in run.runs.values():
        for operation in each.operations:
            start = operation.start
            if start.opcode is Opcode.ASYNC_START:
                start = start.called[0].root
            site = frontend_attributes(start).get(_SITE)
            if site is not None and operation.exposed:
                waited = operation.exposed * each.runs / second
                found[site] = found.get(site, 0.0) + waited
    return found
