"""Our schedule of a program beside the compiler's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hloopt.analysis.latency import CostTable, GpuFixedModel, LatencyModel, TableModel
from hloopt.analysis.latency.profile import Profile, ProfileModel
from hloopt.diagnostics import HloError
from hloopt.ir import Module
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
    """`computations` and `equal` of the scheduler, from XLA's own order of memory; `chains` and
    `equal chains` of both schedulers together; `starts` and `equal starts` of the memory scheduler;
    `peaks` and `equal peaks`; `refused` by both, `lost` where XLA gives no answer."""
    problem: Problem | None = None
    """The first difference of the scheduler."""
    other_problems: list[Problem] = field(default_factory=list)
    """Of what comes before it."""


def judge(text: str, setting: Setting, answer: Answer, profile: Mapping[str, float]) -> Verdict:
    """Schedule as the setting says, once from XLA's order and once from the beginning."""
    verdict = Verdict()
    if answer.loss:
        verdict.counts["lost"] += 1
        return verdict
    if answer.refusal:
        _judge_refusal(text, setting, answer, profile, verdict)
        return verdict
    module = parse_module(answer.before)
    config = SchedulerConfig(**setting.all_options())
    theirs = _orders(parse_module(answer.after), answer.scheduled)
    limited = replace(config, device_memory_size=None, memory_limit=answer.memory_limit)
    model = _model(setting, answer.costs, profile)
    scheduling = ModuleScheduling.of(module, limited.resolved(module), model)
    chosen = {computation.name for computation in scheduling.computations()}
    try:
        schedule_and_report(scheduling, PassContext())
    except HloError as error:
        verdict.counts["computations"] += len(theirs)
        verdict.problem = Problem("only XLA schedules it", error.message)
        return verdict
    ours = _orders(module, answer.scheduled)
    verdict.counts["computations"] += len(theirs)
    verdict.counts["equal"] += sum(ours[name] == theirs[name] for name in theirs)
    if chosen != set(theirs):
        names = ", ".join(sorted(chosen ^ set(theirs)))
        verdict.problem = Problem("other computations are scheduled", names)
    elif difference := first_difference(ours, theirs):
        verdict.problem = Problem("another order", difference)
    if not theirs:  # XLA reckons no peak where it schedules nothing
        verdict.counts["nothing scheduled"] += 1
        return verdict
    verdict.counts["peaks"] += 1
    verdict.counts["equal peaks"] += scheduling.scheduler.life.peak == answer.peak
    if scheduling.scheduler.life.peak != answer.peak:
        details = f"{scheduling.scheduler.life.peak:,} bytes, XLA {answer.peak:,}"
        verdict.other_problems.append(Problem("another peak", details))
    _judge_chain(text, config, model, answer, theirs, verdict)
    return verdict


def _judge_chain(
    text: str,
    config: SchedulerConfig,
    model: LatencyModel,
    answer: Answer,
    theirs: Mapping[str, list[str]],
    verdict: Verdict,
) -> None:
    """Schedule for memory first, as XLA does."""
    module = as_compiled(text, answer)
    try:
        _prepare(module)
        before = _orders(parse_module(answer.before), answer.scheduled)
        ours = _orders(module, answer.scheduled)
        verdict.counts["starts"] += len(before)
        verdict.counts["equal starts"] += sum(ours[name] == before[name] for name in before)
        if difference := first_difference(ours, before):
            verdict.other_problems.append(Problem("another order for memory", difference))
        _schedule(module, config, model)
        ours = _orders(module, answer.scheduled)
    except HloError as error:
        verdict.other_problems.append(Problem("only XLA schedules the chain", error.message))
        ours = {name: [] for name in theirs}
    verdict.counts["chains"] += len(theirs)
    verdict.counts["equal chains"] += sum(ours[name] == theirs[name] for name in theirs)


def _judge_refusal(
    text: str,
    setting: Setting,
    answer: Answer,
    profile: Mapping[str, float],
    verdict: Verdict,
) -> None:
    verdict.counts["refused"] += 1
    module = as_compiled(text, answer)
    model = _model(setting, answer.costs, profile)
    try:
        _prepare(module)
        _schedule(module, SchedulerConfig(**setting.all_options()), model)
    except HloError:
        return
    verdict.counts["refused by XLA alone"] += 1
    verdict.problem = Problem("only we schedule it", answer.refusal)


def as_compiled(text: str, answer: Answer) -> Module:
    """The module as the compiler got it, from a proto: users come in post order there.

    The instructions themselves keep the order of the text.
    """
    given = parse_module(text)
    module = parse_module(answer.given)
    for computation in module.computations.values():
        assert computation.root.users is not None  # asked for, so that all are linked in this order
        found = {instruction.name: instruction for instruction in computation.instructions}
        like = given.computations.get(computation.name)
        names = [i.name for i in like.instructions] if like is not None else []
        if {*names} == found.keys():
            computation.reorder([found[name] for name in names])
    return module


def _prepare(module: Module) -> None:
    """Give the module the order that the scheduler begins with."""
    context = PassContext()
    MemoryScheduler(MemoryScheduler.Options(preset="xla-gpu")).run(module, context)
    options = LegalizeSchedulingAnnotations.Options(keep_sync_annotation="gpu-gemms")
    LegalizeSchedulingAnnotations(options).run(module, context)


def _schedule(module: Module, config: SchedulerConfig, model: LatencyModel) -> None:
    scheduling = ModuleScheduling.of(module, config.resolved(module), model)
    schedule_and_report(scheduling, PassContext())


def _model(
    setting: Setting, costs: Mapping[str, Mapping[str, float]], profile: Mapping[str, float]
) -> LatencyModel:
    base = GpuFixedModel()
    if setting.times == "sol":
        return TableModel(CostTable(costs.get("node", {}), costs.get("latency", {})), base)
    if setting.times == "profile":
        return ProfileModel(Profile(profile), base)
    return base


def _orders(module: Module, names: Iterable[str]) -> dict[str, list[str]]:
    return {name: [i.name for i in module.computations[name].instructions] for name in names}


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
