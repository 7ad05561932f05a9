"""Schedule a module so that other work hides the latency of asynchronous operations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import ClassVar

from hloopt.analysis.latency import Origin
from hloopt.analysis.latency.run_times import RunTimes
from hloopt.analysis.latency.statistics import schedule_statistics
from hloopt.collector import collector_paused
from hloopt.diagnostics import HloError, PassRefused, PipelineError, counted
from hloopt.ir import Computation, Instruction, Module
from hloopt.ir.find import find_instructions
from hloopt.memory.scheduling_limit import argument_and_result_bytes
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.scheduling.latency_hiding_scheduler.hard_limit import keep_limit
from hloopt.passes.scheduling.option_groups import LATENCY_HIDING_SCHEDULER
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.explain import NOT_SCHEDULED, Explainer
from hloopt.scheduling.engine.hooks import NO_HOOKS, TargetHooks
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.engine.stalls import Stalls
from hloopt.scheduling.times import model_of

_NO_STALL = "the wait is that for another operation in flight"


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

    A scheduling group may get stuck half way: every member that is ready exceeds an overlap limit,
    as where a control dependency puts two of its starts before its first done. XLA gives up there
    ("Couldn't find an annotated node to schedule"); this pass schedules what is left of the group
    like other instructions, and a remark says so.

    Statistics count the choices that each of XLA's rules decided, in all orders that were made,
    but for those between instructions that are alike to all but the last rules.
    Remarks say of every operation how much of its latency is hidden and, where it is not all, what
    decided; with `explain` also what was ready when an instruction was chosen, and by which of
    XLA's rules.
    """

    Options: ClassVar[type[SchedulerConfig]] = SchedulerConfig

    option_groups = LATENCY_HIDING_SCHEDULER

    hooks: ClassVar[TargetHooks] = NO_HOOKS
    """Rules, resources and graph edits of a target, for subclasses."""

    options: SchedulerConfig

    def run(self, module: Module, context: PassContext) -> bool:
        if not module.is_scheduled:
            raise PassRefused(
                "it needs a module with a schedule",
                help="run hlo-memory-scheduler before it",
            )
        config = self.options.resolved(module)
        usable = self.options.device_memory_size
        if usable is not None and (taken := argument_and_result_bytes(module)) >= usable:
            context.missed(
                module.entry.root,
                f"arguments and results take {counted(taken, 'byte')}, and device_memory_size is "
                f"{counted(usable, 'byte')}: nothing is left for temporaries, and the memory limit "
                "is 0, as in XLA",
            )
        with collector_paused():
            try:
                model = model_of(config, module)
            except PassRefused:
                raise
            except HloError as error:
                raise PipelineError(error.message, help=error.help, code=error.code) from error
            scheduling = ModuleScheduling.of(module, config, model, self.hooks)
            return schedule_and_report(scheduling, context)


def schedule_and_report(
    scheduling: ModuleScheduling,
    context: PassContext,
    preferences: Mapping[Instruction, float] | None = None,
) -> bool:
    """Schedule what has asynchronous operations, and report; whether that changed any order.

    Of two ready instructions with `preferences` the larger is nearer to the end.
    """
    if context.is_at_limit:
        return False
    scheduler = scheduling.scheduler
    asked = _asked(scheduling)
    if asked:
        scheduler.explainer = Explainer(asked.__contains__)
    if context.wants_remarks:
        scheduler.stalls = Stalls()
    chosen = scheduling.computations()
    before = scheduling.orders()
    if chosen:
        scheduling.schedule_by_rules(chosen, preferences or {})
        if scheduler.config.hard_memory_limit:
            keep_limit(scheduling, chosen, before, context)
        _search(scheduling, chosen, context)
        context.count("computations scheduled", len(chosen))
        for rule, number in scheduler.decisions.most_common():
            context.count(f"decisions by {rule}", number)
        _report_stuck_groups(scheduling, chosen, context)
        _report_guesses(scheduling, chosen, context)
        _report_operations(scheduling, chosen, context)
    if scheduler.explainer is not None:
        for instruction in asked:
            decision = scheduler.explainer.decisions.get(instruction)
            context.analysis(
                instruction,
                decision.sentence(scheduler.model.unit) if decision else NOT_SCHEDULED,
            )
    changed = scheduling.orders() != before
    if changed:
        root = scheduling.module.entry.root
        context.apply(root, "the module has another schedule", remark=False)
    return changed


def _asked(scheduling: ModuleScheduling) -> dict[Instruction, None]:
    """The instructions to explain. Raises PipelineError for a name that nothing has."""
    names = scheduling.scheduler.config.explain
    try:
        return dict.fromkeys(find_instructions(scheduling.module, names)) if names else {}
    except HloError as error:
        raise PipelineError(f"explain: {error.message}", help=error.help) from None


def _search(
    scheduling: ModuleScheduling, computations: list[Computation], context: PassContext
) -> None:
    scheduler = scheduling.scheduler
    options = scheduler.config.search
    if options is None:
        return
    from hloopt.scheduling.search.module_search import search_module

    outcome = search_module(scheduler, computations, options, context.on_progress)
    context.count("orders tried", outcome.tried)
    for finding in outcome.findings:
        report = context.applied if finding.is_better else context.missed
        report(finding.root, finding.reason)


def _report_stuck_groups(
    scheduling: ModuleScheduling, computations: list[Computation], context: PassContext
) -> None:
    """Say which groups are not together, where XLA gives up."""
    for computation in computations:
        for group, instruction, obstacle, way_out in scheduling.scheduler.stuck[computation]:
            context.missed(
                instruction,
                "XLA refuses this module (Couldn't find an annotated node to schedule): with its "
                f"group {group} under way it {obstacle}; here what was left of the group is "
                f"scheduled like other instructions: {way_out}",
            )


def _report_guesses(
    scheduling: ModuleScheduling, computations: list[Computation], context: PassContext
) -> None:
    """Say which times the model does not know."""
    scheduler, guess = scheduling.scheduler, Origin.GUESS
    for computation in computations:
        graph = scheduler.graphs[computation]
        guessed = {n: time for n, time in enumerate(graph.times) if time.origin is guess}
        nodes = map(graph.number.__getitem__, computation.instructions) if guessed else ()
        for node in nodes:
            if node in guessed:
                context.count("instructions of unknown time")
                taken = f"{guessed[node].cycles:g} {scheduler.model.unit} taken"
                context.analysis(
                    graph.instructions[node], f"the cost model does not know its time: {taken}"
                )


def _report_operations(
    scheduling: ModuleScheduling, computations: list[Computation], context: PassContext
) -> None:
    """Say of every asynchronous operation how much of its latency is hidden, and why not all.

    How much is by XLA's statistics of the result with the times of a run, the reason by the
    choice that was made.
    """
    scheduler = scheduling.scheduler
    stalls = scheduler.stalls
    if stalls is None:
        return
    model = RunTimes(scheduler.model, scheduling.module)
    for computation in computations:
        order = list(computation.instructions)
        graph = scheduler.graphs[computation]
        starts = set(compress(graph.instructions, graph.is_start))
        dones = set(compress(graph.instructions, graph.is_done))
        statistics = schedule_statistics(order, model, starts.__contains__, dones.__contains__)
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
            context.missed(start, f"{exposed:,.6g} of {latency:,.6g} {unit} are exposed: {reason}")
