"""Schedule a module so that other work hides the latency of asynchronous operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.latency import LatencyModel, Origin
from hloopt.analysis.latency.run_times import RunTimes
from hloopt.analysis.latency.statistics import schedule_statistics
from hloopt.collector import collector_paused
from hloopt.diagnostics import HloError, PassRefused, PipelineError
from hloopt.ir import Computation, Instruction, Module
from hloopt.ir.find import find_instructions
from hloopt.ir.ordering import computation_post_order
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.memory.backends import CPU, GPU
from hloopt.memory.buffers import Buffers
from hloopt.memory.schedulers import fragmentation
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.scheduling.latency_hiding_scheduler.config import SchedulerConfig
from hloopt.passes.scheduling.latency_hiding_scheduler.edges import BufferHazards
from hloopt.passes.scheduling.latency_hiding_scheduler.explain import Explainer
from hloopt.passes.scheduling.latency_hiding_scheduler.gpu_resources import GpuResourceTracker
from hloopt.passes.scheduling.latency_hiding_scheduler.hard_limit import keep_limit
from hloopt.passes.scheduling.latency_hiding_scheduler.hints import asks_for_delay
from hloopt.passes.scheduling.latency_hiding_scheduler.pressure import BufferLife
from hloopt.passes.scheduling.latency_hiding_scheduler.resources import ResourceTracker
from hloopt.passes.scheduling.latency_hiding_scheduler.scheduler import Scheduler
from hloopt.passes.scheduling.latency_hiding_scheduler.stalls import Stalls
from hloopt.passes.scheduling.latency_hiding_scheduler.times import model_of
from hloopt.passes.scheduling.option_groups import LATENCY_HIDING_SCHEDULER

_NO_STALL = "the wait is that for another operation in flight"
NOT_SCHEDULED = "nothing asynchronous is in its computation, so the order of that stays"
_LESS_MEMORY = 0.9
"""What is left of the limit when scheduling again."""


@register(
    "latency-hiding-scheduler",
    preserves="bits",
    xla=XlaPass("LatencyHidingScheduler", "xla/service/latency_hiding_scheduler.h"),
)
class LatencyHidingScheduler(ModulePass):
    """Reorder scheduled computations so that work hides the latency of asynchronous operations.

    Of each computation with asynchronous operations a graph is made and scheduled anew, from its
    end to its beginning: a done is put in place, then what takes time, then the start. Overlap
    limits say how many operations of a kind may be in flight, `memory_limit` how much memory the
    order should need. The result is that of XLA. Near-linear, however many instructions are ready
    at a time.

    Memory is reckoned as XLA's pass does: all buffers of the default memory space that are alive
    at one time, but for the parameters of the entry. XLA's limit only decides between instructions
    that are ready, so the peak may be above it. With `hard_memory_limit` the module is then
    scheduled again with smaller limits, from the memory scheduler's order, after these orders
    themselves, and last with starts next to their dones, until the peak is below the limit; the
    pass refuses where none of that helps, and says what is alive at the peak.

    Remarks say of every operation how much of its latency is hidden and, where it is not all, what
    decided; with `explain` also what was ready when an instruction was chosen, and by which of
    XLA's rules.
    """

    Options: ClassVar[type[SchedulerConfig]] = SchedulerConfig

    option_groups = LATENCY_HIDING_SCHEDULER

    options: SchedulerConfig

    def run(self, module: Module, context: PassContext) -> bool:
        if not module.is_scheduled:
            raise PassRefused(
                "it needs a module with a schedule",
                help="run hlo-memory-scheduler before it",
            )
        config = self.options.resolved(module)
        with collector_paused():
            try:
                model = model_of(config, module)
            except PassRefused:
                raise
            except HloError as error:
                raise PipelineError(error.message, help=error.help, code=error.code) from error
            return ModuleScheduling.of(module, config, model).run(context)


@dataclass(slots=True)
class ModuleScheduling:
    """The scheduling of one module."""

    module: Module
    scheduler: Scheduler

    @classmethod
    def of(
        cls,
        module: Module,
        config: SchedulerConfig,
        model: LatencyModel,
        tracker: ResourceTracker | None = None,
    ) -> ModuleScheduling:
        """`config` has to be resolved. O(slots of all instructions)."""
        is_gpu = config.preset == "xla-gpu"
        if tracker is None:
            tracker = GpuResourceTracker(config) if is_gpu else ResourceTracker(config)
        flow = Dataflow.of(module)
        buffers = Buffers.of(flow)
        life = BufferLife.of(flow, buffers, shape_bytes if is_gpu else leaf_bytes)
        hazards = BufferHazards(flow, buffers)
        return cls(module, Scheduler(config, model, tracker, hazards, life))

    def run(
        self, context: PassContext, preferences: Mapping[Instruction, float] | None = None
    ) -> bool:
        """Schedule what has asynchronous operations; whether that changed any order.

        Of two ready instructions with `preferences` the larger is nearer to the end.
        """
        if context.is_at_limit:
            return False
        scheduler = self.scheduler
        asked = self._asked()
        if asked:
            scheduler.explainer = Explainer(asked.__contains__)
        if context.wants_remarks:
            scheduler.stalls = Stalls()
        chosen = self.computations()
        before = self.orders()
        if chosen:
            self._schedule_all(chosen, preferences or {})
            if scheduler.config.hard_memory_limit:
                keep_limit(self, chosen, before, context)
            self._search(chosen, context)
            context.count("computations scheduled", len(chosen))
            self._report_guesses(chosen, context)
            self._report_operations(chosen, context)
        if scheduler.explainer is not None:
            for instruction in asked:
                decision = scheduler.explainer.decisions.get(instruction)
                context.analysis(
                    instruction,
                    decision.sentence(scheduler.model.unit) if decision else NOT_SCHEDULED,
                )
        changed = self.orders() != before
        if changed:
            context.apply(self.module.entry.root, "the module has another schedule", remark=False)
        return changed

    def orders(self) -> dict[Computation, list[Instruction]]:
        """The present order of every computation that has one. O(instructions)."""
        return {
            computation: list(computation.instructions)
            for computation in self.module.computations.values()
            if not computation.is_fusion
        }

    def _asked(self) -> dict[Instruction, None]:
        """The instructions to explain. Raises PipelineError for a name that nothing has."""
        names = self.scheduler.config.explain
        try:
            return dict.fromkeys(find_instructions(self.module, names)) if names else {}
        except HloError as error:
            raise PipelineError(f"explain: {error.message}", help=error.help) from None

    def _schedule_all(
        self, chosen: list[Computation], preferences: Mapping[Instruction, float]
    ) -> None:
        limit = current = self.scheduler.config.limit
        self.schedule(chosen, limit, preferences)
        for _ in range(self.scheduler.config.rerun):
            if self.peak() <= limit:
                break
            current = int(current * _LESS_MEMORY)
            self.scheduler.life.restart()
            self.schedule(chosen, current, preferences)

    def _search(self, computations: list[Computation], context: PassContext) -> None:
        options = self.scheduler.config.search
        if options is not None:
            from hloopt.passes.scheduling.latency_hiding_scheduler.search.module_search import (
                search_module,
            )

            search_module(self.scheduler, computations, options, context)

    def _report_guesses(self, computations: list[Computation], context: PassContext) -> None:
        """Say which times the model does not know."""
        model = self.scheduler.model
        for computation in computations:
            for instruction in computation.instructions:
                time = model.node_time(instruction)
                if time.origin is Origin.GUESS:
                    context.count("instructions of unknown time")
                    taken = f"{time.cycles:g} {model.unit} taken"
                    context.analysis(instruction, f"the cost model does not know its time: {taken}")

    def _report_operations(self, computations: list[Computation], context: PassContext) -> None:
        """Say of every asynchronous operation how much of its latency is hidden, and why not all.

        How much is by XLA's statistics of the result with the times of a run, the reason by the
        choice that was made.
        """
        scheduler = self.scheduler
        tracker, stalls = scheduler.tracker, scheduler.stalls
        if stalls is None:
            return
        model = RunTimes(scheduler.model, self.module)
        for computation in computations:
            order = list(computation.instructions)
            statistics = schedule_statistics(order, model, tracker.is_start, tracker.is_done)
            for done, exposed in statistics.exposed.items():
                start = done.operands[0]
                latency, origin = model.edge_time(start, done)
                if origin is Origin.UNKNOWN:
                    context.analysis(start, "the cost model does not know how long it takes")
                    continue
                unit = f"{model.unit}{', a guess,' if origin is Origin.GUESS else ''}"
                if not exposed:
                    context.applied(start, f"all of its {latency:,.6g} {unit} are hidden")
                    continue
                closing = done if scheduler.config.top_down_scheduling else start
                reason = stalls.reasons.get(closing, _NO_STALL)
                context.missed(
                    start, f"{exposed:,.6g} of {latency:,.6g} {unit} are exposed: {reason}"
                )

    def peak(self) -> int:
        """The peak that decides about another run."""
        scheduler = self.scheduler
        peak = scheduler.life.peak
        if scheduler.config.estimate_fragmentation_size:
            backend = GPU if scheduler.config.preset == "xla-gpu" else CPU
            peak += fragmentation(scheduler.hazards.buffers, backend)
        return peak

    def computations(self) -> list[Computation]:
        """Those with asynchronous operations, or hints that are as good, callees first.

        What nothing calls any more is never run, and left as it is.
        """
        tracker, life = self.scheduler.tracker, self.scheduler.life
        return [
            computation
            for computation in computation_post_order(self.module)
            if not computation.is_fusion
            and computation in life.states
            and any(
                asks_for_delay(instruction)
                or (
                    tracker.may_be_asynchronous(instruction.opcode)
                    and (tracker.is_start(instruction) or tracker.is_done(instruction))
                )
                for instruction in computation.instructions
            )
        ]

    def schedule(
        self,
        computations: list[Computation],
        memory_limit: int,
        preferences: Mapping[Instruction, float],
    ) -> None:
        """Schedule computations, callees first, once."""
        own: dict[Computation, dict[Instruction, float]] = {}
        for instruction, preference in preferences.items():
            own.setdefault(instruction.parent, {})[instruction] = preference
        for computation in computations:
            order = self.scheduler.order(computation, own.get(computation), memory_limit)
            if order != list(computation.instructions):
                computation.reorder(order)
            self.scheduler.tracker.forget(computation)
