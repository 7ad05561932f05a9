"""Runs records of the scheduler: module, passes with their options, expectations."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformance_lib.errors import NotModelled, RecordError
from conformance_lib.forms import list_of
from conformance_lib.records import Record, text_of
from conformance_lib.scheduling import (  # noqa: F401  # registers
    expect_positions,
    expect_run,
    expect_structure,
)
from conformance_lib.scheduling.expectations import differences_across, failures
from conformance_lib.scheduling.gpu_module import gpu_post_process, gpu_schedule_module
from conformance_lib.scheduling.models import find_model
from conformance_lib.scheduling.outcome import RunOutcome
from conformance_lib.scheduling.preparation import check_async_names, start
from conformance_lib.scheduling.trackers import find_hooks
from conformance_lib.scheduling.unit_words import RESOURCE_CASE, check_unit
from conformance_lib.scheduling.units import UNITS
from conformance_lib.scheduling.words import check_words
from hloopt.analysis.latency.statistics import schedule_statistics
from hloopt.diagnostics import HloError
from hloopt.ir import Instruction, Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling

SCHEDULER = "latency-hiding-scheduler"
CREATOR = "async-collective-creator"
GPU_MODULE, GPU_POST_PROCESS = "gpu-schedule-module", "gpu-schedule-post-process"
_SPECIAL = (SCHEDULER, GPU_MODULE, GPU_POST_PROCESS)
_MERGED = ("config", "debug_options")
"""Fields of a record whose entries a variant adds to or replaces."""


def is_scheduling_record(record: Record) -> bool:
    """Whether a record has the format of the scheduler's tables."""
    return "passes" in record.fields or "unit" in record.fields


def run_scheduling(record: Record) -> list[str]:
    """Mismatches with the record.

    Raises RecordError for what has no meaning here, NotModelled for what hloopt does not have.
    """
    fields = record.fields
    if "unit" in fields:
        check_unit(fields)
        return list(UNITS[fields["unit"]](fields))
    check_words(fields)
    if "early_target_rule" in fields.get("config", {}):
        raise NotModelled("hloopt has no scheduler with one early target rule alone")
    found = list(_resource_cases(fields))
    if "steps" in fields:
        return [*found, *_run_steps(fields)]
    variants = fields.get("variants", [{}])
    return found + [f for variant in variants for f in _run_variant(_merged(fields, variant))]


def _resource_cases(fields: Mapping[str, Any]) -> Iterator[str]:
    """The `resource_cases` that do not hold for the module as parsed."""
    if cases := fields.get("resource_cases"):
        if reason := list_of(RESOURCE_CASE).problem(cases):
            raise RecordError(f"resource_cases: {reason}")
        yield from UNITS["gpu_resources"]({"hlo": text_of(fields), "cases": cases})


def _merged(fields: Mapping[str, Any], variant: Mapping[str, Any]) -> dict[str, Any]:
    """The record as a variant of it reads."""
    merged = {**fields, **variant}
    for name in _MERGED:
        merged[name] = {**fields.get(name, {}), **variant.get(name, {})}
    merged["expect"] = [*fields.get("expect", ()), *variant.get("expect", ())]
    return merged


def _run_variant(fields: Mapping[str, Any]) -> Iterator[str]:
    outcomes: dict[str, RunOutcome] = {}
    for run in fields.get("runs", [{"name": "", "hlo_subst": []}]):
        subst = [*fields.get("hlo_subst", ()), *run["hlo_subst"]]
        outcome = outcomes[run["name"]] = start({**fields, "hlo_subst": subst})
        _run(outcome, fields, fields["config"], fields["passes"])
        for expected in fields["expect"]:
            yield from failures(outcome, expected)
        for then in fields.get("then", ()):
            _run(outcome, fields, fields["config"], then["passes"])
            for expected in then["expect"]:
                yield from failures(outcome, expected)
    for expected in fields.get("expect_across_runs", ()):
        yield from differences_across(outcomes, expected)


def _run_steps(fields: Mapping[str, Any]) -> Iterator[str]:
    outcome = start(fields)
    for step in fields["steps"]:
        outcome.error = None  # an error belongs to its step
        _run(outcome, fields, step["config"], fields["passes"])
        for expected in (*fields.get("expect", ()), *step["expect"]):
            yield from failures(outcome, expected)


def _run(
    outcome: RunOutcome,
    fields: Mapping[str, Any],
    config: Mapping[str, Any],
    passes: list[str],
) -> None:
    options = fields.get("pass_options", {})
    made = {  # a pass that cannot be made is no failure of a run
        name: create_pass(name, _options(options.get(name, {})))
        for name in passes
        if name not in _SPECIAL
    }
    try:
        for name in passes:
            if name == SCHEDULER:
                outcome.changed = _schedule(outcome, fields, dict(config))
            elif name == GPU_MODULE:
                gpu_schedule_module(outcome, fields)
            elif name == GPU_POST_PROCESS:
                gpu_post_process(outcome.module)
            else:
                outcome.changed = made[name].run(outcome.module, PassContext())
            if name == CREATOR:
                check_async_names(outcome.module, fields.get("async_names", {}))
    except HloError as error:
        outcome.error = error


def _options(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _option(value) for name, value in values.items()}


def _option(value: Any) -> Any:
    """Options in words: which instructions are meant."""
    match value:
        case "all" | "none":
            return value == "all"
        case {"only_opcodes": list(opcodes), **rest} if not rest:
            return _with_opcode(opcodes, included=True)
        case {"except_opcodes": list(opcodes), **rest} if not rest:
            return _with_opcode(opcodes, included=False)
    return value


def _with_opcode(opcodes: list[str], *, included: bool) -> Callable[[Instruction], bool]:
    return lambda instruction: (instruction.opcode.value in opcodes) is included


def _schedule(outcome: RunOutcome, fields: Mapping[str, Any], values: dict[str, Any]) -> bool:
    """Run the scheduler; whether XLA reports a change, which it does for any work at all."""
    module = outcome.module
    if not module.is_scheduled:
        raise RecordError("the module is not scheduled")
    model = find_model(values.pop("latency_estimator"))
    description = values.pop("async_tracker", None)
    config = SchedulerConfig(**values).resolved()
    scheduling = ModuleScheduling.of(module, config, model, find_hooks(description))
    forced = fields.get("force_schedule", ())
    for name in forced:
        computation = module.computations[name]
        computation.reorder(scheduling.scheduler.order(computation))
    preferences = _preferences(module, fields.get("preferences"))
    if preferences and fields["preferences"] == "random":
        _schedule_again(outcome, scheduling, preferences)
        return True
    chosen = scheduling.computations()
    schedule_and_report(scheduling, PassContext(), preferences)
    outcome.peak_memory = scheduling.scheduler.life.peak
    return bool(chosen or forced)


def _preferences(module: Module, wanted: Any) -> dict[Instruction, float]:
    instructions = list(module.entry.instructions)
    if wanted == "random":
        numbers = random.Random(0)
        return {instruction: numbers.random() for instruction in instructions}
    by_name = {instruction.name: instruction for instruction in instructions}
    return {by_name[name]: value for name, value in (wanted or {}).items()}


def _schedule_again(
    outcome: RunOutcome, scheduling: ModuleScheduling, preferences: dict[Instruction, float]
) -> None:
    """Schedule ENTRY twice from the same order, and note what is the same."""
    entry, scheduler = outcome.module.entry, scheduling.scheduler
    found = []
    for _ in range(2):
        order = scheduler.order(entry, preferences)
        statistics = schedule_statistics(
            order, scheduler.model, scheduler.tracker.is_start, scheduler.tracker.is_done
        )
        found.append((order, scheduler.life.states[entry].peak, statistics.total_wasted))
    names = ("schedule", "peak_memory", "total_wasted_cycles")
    outcome.repeated = {
        name: first == second for name, first, second in zip(names, *found, strict=True)
    }
    entry.reorder(found[0][0])
