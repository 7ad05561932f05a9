"""Our schedule of a program beside the compiler's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hloopt.analysis.latency import (
    CostTable,
    GpuFixedModel,
    LatencyModel,
    Origin,
    TableModel,
    Time,
)
from hloopt.analysis.latency.profile import Profile, ProfileModel
from hloopt.diagnostics import HloError
from hloopt.ir import Computation, Instruction, Module
from hloopt.ir.attributes.scheduling_annotations import group_of, set_group
from hloopt.ir.schedule import set_schedule
from hloopt.pass_framework.base import PassContext
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.passes.scheduling.legalize_scheduling_annotations import LegalizeSchedulingAnnotations
from hloopt.passes.scheduling.memory_scheduler import MemoryScheduler
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.text import parse_module
from schedule_fuzz_lib.compiler import Answer
from schedule_fuzz_lib.settings import Setting
from sweep_lib.findings import Problem


@dataclass(slots=True)
class Verdict:
    """How much of a program's schedule is the same."""

    counts: Counter[str] = field(default_factory=Counter)
    """`computations` and `equal` of the scheduler, from XLA's own order for memory; `chains` and
    `equal chains` of both schedulers together; `starts` and `equal starts` of the memory scheduler;
    `refused` by XLA, `refused by XLA alone` and `refused as we say` in a remark, `lost` where it
    gives no answer."""
    problem: Problem | None = None
    """The first difference of the scheduler."""
    other_problems: list[Problem] = field(default_factory=list)
    """Of what comes before it."""


def judge(text: str, setting: Setting, answer: Answer, profile: Mapping[str, float]) -> Verdict:
    """Schedule as the setting says, once from XLA's order and once from the beginning.

    Computations with asynchronous operations count.
    """
    verdict = Verdict()
    if answer.loss:
        verdict.counts["lost"] += 1
        return verdict
    config = SchedulerConfig(**setting.all_options())
    model = _model(setting, answer.costs, profile)
    if answer.refusal:
        _judge_refusal(text, config, model, answer, verdict)
        return verdict
    module = _scheduled_for_memory(text, answer)
    theirs = _orders(parse_module(answer.after))
    scheduling = ModuleScheduling.of(module, config.resolved(module), model)
    chosen = [computation.name for computation in scheduling.computations()]
    verdict.counts["computations"] += len(chosen)
    verdict.counts["nothing scheduled"] += not chosen
    try:
        schedule_and_report(scheduling, PassContext())
    except HloError as error:
        verdict.problem = Problem("only XLA schedules it", error.message)
        return verdict
    if _takes_groups_apart(scheduling):
        verdict.problem = Problem("XLA schedules a group", "and we say that it refuses it")
        return verdict
    ours = _orders(module)
    verdict.counts["equal"] += sum(ours[name] == theirs[name] for name in chosen)
    if difference := first_difference(ours, theirs):
        verdict.problem = Problem("another order", difference)
    _judge_chain(text, config, model, answer, chosen, verdict)
    return verdict


def _judge_chain(
    text: str,
    config: SchedulerConfig,
    model: LatencyModel,
    answer: Answer,
    chosen: list[str],
    verdict: Verdict,
) -> None:
    """Schedule for memory first, as XLA does."""
    before, after = (_orders(parse_module(t)) for t in (answer.before, answer.after))
    module = as_compiled(text, answer)
    verdict.counts["starts"] += len(chosen)
    verdict.counts["chains"] += len(chosen)
    try:
        schedule_for_memory(module)
        ours = _orders(module)
        verdict.counts["equal starts"] += sum(ours[name] == before[name] for name in chosen)
        if difference := first_difference(ours, {name: before[name] for name in chosen}):
            verdict.other_problems.append(Problem("another order for memory", difference))
        _schedule(module, config, model)
        ours = _orders(module)
        verdict.counts["equal chains"] += sum(ours[name] == after[name] for name in chosen)
    except HloError as error:
        verdict.other_problems.append(Problem("only XLA schedules the chain", error.message))


def _judge_refusal(
    text: str, config: SchedulerConfig, model: LatencyModel, answer: Answer, verdict: Verdict
) -> None:
    """See that we refuse a program, too; where only XLA does, its message is the problem."""
    verdict.counts["refused"] += 1
    module = as_compiled(text, answer)
    try:
        schedule_for_memory(module)
        scheduling = _schedule(module, config, model)
    except HloError:
        return
    if "annotated node" in answer.refusal and _takes_groups_apart(scheduling):
        verdict.counts["refused as we say"] += 1
        return
    verdict.counts["refused by XLA alone"] += 1
    verdict.other_problems.append(Problem("only we schedule it", answer.refusal))


def as_compiled(text: str, answer: Answer) -> Module:
    """The module as the compiler got it, from a proto: users come in post order there.

    The instructions themselves keep the order of the text.
    """
    given = parse_module(text)
    module = parse_module(answer.given)
    for computation in module.computations.values():
        computation.link_users()  # in the order that this text has
        found = {instruction.name: instruction for instruction in computation.instructions}
        like = given.computations.get(computation.name)
        names = [i.name for i in like.instructions] if like is not None else []
        if {*names} == found.keys():
            computation.reorder([found[name] for name in names])
    return module


def _scheduled_for_memory(text: str, answer: Answer) -> Module:
    """The module in the order that the compiler's scheduler got, with its annotations.

    Its text alone would not do: users would come in the order of the schedule.
    """
    module = as_compiled(text, answer)
    orders: dict[Computation, list[Instruction]] = {}
    for name, computation in parse_module(answer.before).computations.items():
        if computation.is_fusion:
            continue
        found = {i.name: i for i in module.computations[name].instructions}
        orders[module.computations[name]] = [found[i.name] for i in computation.instructions]
        for instruction in computation.instructions:
            group = group_of(instruction)
            if group != group_of(found[instruction.name]):
                set_group(found[instruction.name], group)
    set_schedule(module, orders)
    return module


def schedule_for_memory(module: Module) -> None:
    """Give the module the order that the scheduler begins with."""
    context = PassContext()
    MemoryScheduler(MemoryScheduler.Options(preset="xla-gpu")).run(module, context)
    options = LegalizeSchedulingAnnotations.Options(keep_sync_annotation="gpu-gemms")
    LegalizeSchedulingAnnotations(options).run(module, context)


def _schedule(module: Module, config: SchedulerConfig, model: LatencyModel) -> ModuleScheduling:
    scheduling = ModuleScheduling.of(module, config.resolved(module), model)
    schedule_and_report(scheduling, PassContext())
    return scheduling


def _takes_groups_apart(scheduling: ModuleScheduling) -> bool:
    """Whether a remark says that XLA refuses the module; XLA does not say for which group."""
    return any(scheduling.scheduler.stuck.values())


class _LoggedTimes(TableModel):
    """Times that the compiler logged: a collective's holds for each edge that begins at it."""

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        cycles = self.table.latency.get(source.name)
        if cycles is None:
            return self.base.edge_time(source, target)
        return Time(cycles, Origin.TABLE)


def _model(
    setting: Setting, costs: Mapping[str, Mapping[str, float]], profile: Mapping[str, float]
) -> LatencyModel:
    base = GpuFixedModel()
    if setting.times == "sol":
        return _LoggedTimes(CostTable(costs.get("node", {}), costs.get("latency", {})), base)
    if setting.times == "profile":
        return ProfileModel(Profile(profile), base)
    return base


def _orders(module: Module) -> dict[str, list[str]]:
    return {
        computation.name: [instruction.name for instruction in computation.instructions]
        for computation in module.computations.values()
        if not computation.is_fusion
    }


def first_difference(ours: Mapping[str, list[str]], theirs: Mapping[str, list[str]]) -> str:
    """A line about the first computation that differs; empty where none does.

    The scheduler works from the end, so that is where it begins.
    """
    for name, order in theirs.items():
        mine = ours[name]
        if mine == order:
            continue
        last = max(at for at in range(len(order)) if mine[at] != order[at])
        differing = sum(a != b for a, b in zip(mine, order, strict=True))
        after = f" before %{order[last + 1]}" if last + 1 < len(order) else " at the end"
        return (
            f"%{name}: {differing} of {len(order)} elsewhere, from the end first %{mine[last]}, "
            f"XLA %{order[last]},{after}"
        )
    return ""
