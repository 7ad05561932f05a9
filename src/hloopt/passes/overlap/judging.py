"""The time and memory of a program after decisions, by the simulator and by buffer assignment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hloopt.analysis.latency.run_times import RunTimes
from hloopt.ir.attributes.frontend_attributes import frontend_attributes, set_frontend_attributes
from hloopt.ir.clone import clone_module
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.memory.analysis import analyze_memory
from hloopt.memory.backends import GPU
from hloopt.passes.overlap.decisions import Decision, Draft, PassRun, run_passes
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.passes.overlap.sites import is_site, moved
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.gpu_tracker import GpuResourceTracker
from hloopt.scheduling.times import model_of
from hloopt.simulation import Simulation, Streams, simulate

_SITE = "hloopt.site"
"""The frontend attribute that says what a start is of, while it is judged."""

_ASYNCHRONOUS: Mapping[str, object] = {
    f"convert_{kind}": True
    for kind in (
        *("all_reduce", "all_gather", "collective_broadcast", "collective_permute"),
        *("all_to_all", "reduce_scatter", "ragged_all_to_all"),
    )
}

_NOT_MARKED: PassRun = ("async-collective-annotator", {"disable_async_collectives": []})
"""Marks no collective as synchronous, and takes such marks away."""


@dataclass(frozen=True)
class Figures:
    """The time and memory of a program as it runs after decisions."""

    seconds: float
    smooth_seconds: float
    """The time of a step where tables are smoothed: times never fall where sizes grow."""
    scheduler_seconds: float
    """The time of a step by what XLA's scheduler goes by, constants among them."""
    exposed: float
    """Seconds of waiting."""
    allocated: int
    """Bytes that buffer assignment gives to it in device memory."""
    waits: Mapping[str, float] = field(repr=False)
    """By name of what is moved (`moved`) the seconds of waiting for a collective or transfer of the
    draft, all runs together."""


@dataclass(frozen=True)
class Judged(Figures):
    """A program after decisions, with its figures.

    Where these are from another process, the program itself is made when it is asked for.
    """

    decisions: tuple[Decision, ...]
    make: Callable[[], Draft] = field(repr=False)
    finish: Callable[[Draft], Module] = field(repr=False)

    @cached_property
    def draft(self) -> Draft:
        """The program without a schedule, collectives synchronous."""
        return self.make()

    @cached_property
    def module(self) -> Module:
        """The program scheduled, collectives asynchronous."""
        return self.finish(self.draft)


@dataclass(slots=True)
class Judge:
    """Finishes drafts and judges them. Near-linear in the module."""

    options: OverlapOptions

    def finish(self, draft: Draft, order: Mapping[str, object] | None = None) -> Judged:
        """Make a draft run as XLA:GPU does, and judge it.

        `order` are options of the scheduler's search for a better order, if there is to be one.
        """
        module = self._marked(draft, order)
        figures = self.figures(module)
        _unmark(module)
        return _judged(figures, draft, module)

    def judge(self, draft: Draft, module: Module) -> Judged:
        """Judge a scheduled module that is made of a draft."""
        return _judged(self.figures(module), draft, module)

    def figures_of(self, draft: Draft) -> Figures:
        """The figures of a draft once it runs as XLA:GPU runs it."""
        return self.figures(self._marked(draft, None))

    def foreseen(
        self, figures: Figures, decisions: tuple[Decision, ...], make: Callable[[], Draft]
    ) -> Judged:
        """A program whose figures are known already."""
        return Judged(**vars(figures), decisions=decisions, make=make, finish=self._finished)

    def _finished(self, draft: Draft) -> Module:
        module = self._marked(draft, None)
        _unmark(module)
        return module

    def _marked(self, draft: Draft, order: Mapping[str, object] | None) -> Module:
        """A copy as XLA:GPU runs it, scheduled; starts of collectives say what they are of.

        Near its limit of memory the scheduler leaves collectives exposed, though they may fit when
        they overlap: it is given the limit only where the program does not fit without.
        """
        limit = self.options.memory_limit
        if limit is not None:
            module = self._scheduled(draft, None, None)
            if _allocated(module) <= limit:
                if order is None:
                    return module
                limit = None
        return self._scheduled(draft, order, limit)

    def _scheduled(
        self, draft: Draft, order: Mapping[str, object] | None, limit: int | None
    ) -> Module:
        module, _ = clone_module(draft.module)
        _mark(module)
        run_passes(module, _with_late(self._passes(order, limit), draft.decisions))
        return module

    def figures(self, module: Module) -> Figures:
        """The figures of a scheduled module."""
        run = self.simulated(module)
        second = _cycles_per_second(run)
        return Figures(
            seconds=run.makespan / second,
            smooth_seconds=self.smooth_seconds(module),
            scheduler_seconds=self._scheduler_seconds(module),
            exposed=run.exposed / second,
            allocated=_allocated(module),
            waits=_waits(run, second),
        )

    def simulated(self, module: Module) -> Simulation:
        """The run of a scheduled module, loops with their trips."""
        return _simulated(module, self._config)

    def smooth_seconds(self, module: Module) -> float:
        """The time of a scheduled module with smoothed tables."""
        run = _simulated(module, self._smooth_config)
        return run.makespan / _cycles_per_second(run)

    def _scheduler_seconds(self, module: Module) -> float:
        # Collectives are marked synchronous behind it, and take other times then: a program that
        # is given as it comes from the scheduler has no marks yet.
        asynchronous, _ = clone_module(module)
        run_passes(asynchronous, [_NOT_MARKED])
        run = _simulated(asynchronous, self._config, of_scheduler=True)
        return run.makespan / _cycles_per_second(run)

    @property
    def _scheduler(self) -> dict[str, Any]:
        """The options of the scheduler, but for its search and its memory."""
        options = self.options
        return {
            "preset": "xla-gpu",
            "target": options.target,
            "cost_model": options.cost_model,
            "parallel_collective_overlap_limit": options.overlap_limit,
        }

    @property
    def _config(self) -> SchedulerConfig:
        return SchedulerConfig(**self._scheduler)

    @property
    def _smooth_config(self) -> SchedulerConfig:
        """That of the model with smoothed tables; only `sol` has such."""
        config = self._config
        is_sol = config.model_choice.for_target() == "sol"
        return replace(config, smooth_tables=True) if is_sol else config

    def _passes(self, order: Mapping[str, object] | None, limit: int | None) -> list[PassRun]:
        memory = {"device_memory_size": limit, "search": None if order is None else dict(order)}
        return [
            "host-compute-asyncifier",
            ("host-memory-transfer-asyncifier", {"fused": True}),
            ("async-collective-creator", dict(_ASYNCHRONOUS)),
            _NOT_MARKED,
            "async-stream-attribute-wrapper",
            "explicit-stream-annotation-async-wrapper",
            "explicit-collectives-group-async-wrapper",
            "flatten-call-graph",
            ("copy-insertion", {"alias_info": "gpu"}),
            ("hlo-memory-scheduler", {"preset": "xla-gpu"}),
            ("legalize-scheduling-annotations", {"keep_sync_annotation": "gpu-gemms"}),
            ("latency-hiding-scheduler", {**self._scheduler, **memory}),
            "gpu-convert-async-collectives-to-sync",
        ]


def _judged(figures: Figures, draft: Draft, module: Module) -> Judged:
    return Judged(
        **vars(figures),
        decisions=draft.decisions,
        make=lambda: draft,
        finish=lambda _: module,
    )


def _with_late(passes: list[PassRun], decisions: tuple[Decision, ...]) -> list[PassRun]:
    """The passes with the options that late decisions give them, and behind them other passes."""
    late = [decision for decision in decisions if decision.is_late]
    chosen: dict[str, dict[str, Any]] = {}
    for decision in late:
        chosen.setdefault(decision.pass_name, {}).update(decision.options)
    if not chosen:
        return passes
    named = [(each, {}) if isinstance(each, str) else each for each in passes]
    finishing: list[PassRun] = [
        (name, {**options, **chosen.pop(name, {})}) for name, options in named
    ]
    return [*finishing, *chosen.items()]


def _simulated(
    module: Module, config: SchedulerConfig, *, of_scheduler: bool = False
) -> Simulation:
    config = config.resolved(module)
    times = model_of(config, module)
    if not of_scheduler:
        times = RunTimes(times, module)
    return simulate(module, times, Streams(GpuResourceTracker(config)), loops="trips")


def _allocated(module: Module) -> int:
    return analyze_memory(module, backend=GPU).statistics.total_allocation_bytes


def _cycles_per_second(run: Simulation) -> float:
    return run.model.cycles_per_microsecond * 1e6


def _mark(module: Module) -> None:
    for instruction in module.instructions():
        if is_site(instruction):
            notes = {**frontend_attributes(instruction), _SITE: moved(instruction).name}
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
            marked = operation.start
            if marked.opcode is Opcode.ASYNC_START:
                marked = marked.called[0].root
            elif marked.opcode is Opcode.COPY_START:
                marked = operation.done
            site = frontend_attributes(marked).get(_SITE)
            if site is not None and operation.exposed:
                waited = operation.exposed * each.runs / second
                found[site] = found.get(site, 0.0) + waited
    return found
