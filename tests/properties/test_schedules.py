"""Laws of schedules of asynchronous programs."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.schedule_checks import violations
from tests.properties.strategies.async_modules import async_modules

from corpus import CorpusEntry
from hloopt.analysis.latency import CostTable, TableModel
from hloopt.diagnostics import PassRefused
from hloopt.equivalence import Reference, RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.ir import Module
from hloopt.ir.clone import clone_module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.explain import Explainer
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.times import model_of
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, verify_module

CONFIGS: list[dict[str, Any]] = [
    {},
    {"aggressive_scheduling_policies": True, "all_gather_overlap_limit": 2},
    {"preset": "xla-gpu"},
    {"preset": "xla-gpu", "memory_limit": 64},
    {"preset": "xla-gpu", "parallel_collective_overlap_limit": 3},
    {
        "preset": "xla-gpu",
        "parallel_collective_overlap_limit": 2,
        "collective_start_as_early_as_possible": True,
        "enable_collective_multi_streaming": True,
    },
    {
        "aggressive_scheduling_policies": True,
        "prioritize_async_depth_over_stall": True,
        "enable_release_start_policy": True,
        "enable_schedule_by_structure": True,
    },
    {"memory_limit": 100, "depth_based_memory_pressure_reduction": True, "rerun": 1},
    {"top_down_scheduling": True, "aggressive_scheduling_policies": True},
]
IDS = [", ".join(f"{k}={v}" for k, v in config.items()) or "plain" for config in CONFIGS]


def scheduling_of(
    module: Module, options: dict[str, Any], costs: CostTable | None = None
) -> ModuleScheduling:
    config = SchedulerConfig(**options).resolved()
    model = model_of(config, module)
    return ModuleScheduling.of(module, config, TableModel(costs, model) if costs else model)


def some_costs(module: Module, seed: int) -> CostTable:
    """Few different costs and latencies, so that some are equal."""
    numbers = random.Random(seed)
    names = [instruction.name for instruction in module.instructions()]
    return CostTable(
        {name: numbers.choice((0.0, 1.0, 2.5, 4.0)) for name in names},
        {name: numbers.choice((1.0, 3.0, 8.0)) for name in names},
    )


@pytest.mark.parametrize("options", CONFIGS, ids=IDS)
@given(text=async_modules(), seed=st.integers(0, 9))
@settings(max_examples=40)
def test_schedules_are_valid_and_choices_are_what_comparing_all_in_turn_gives(
    options: dict[str, Any], text: str, seed: int
) -> None:
    module = parse_module(text)
    assert verify_module(module) == []
    scheduling = scheduling_of(module, options, some_costs(module, seed) if seed else None)
    explainer = scheduling.scheduler.explainer = Explainer(lambda instruction: True)
    is_top_down = options.get("top_down_scheduling", False)
    try:
        schedule_and_report(scheduling, PassContext())
    except PassRefused:
        assert is_top_down  # it may begin what cannot end before something else has begun
        return
    assert verify_module(module) == []
    if not is_top_down:
        assert violations(module, scheduling.scheduler.tracker) == []
    for instruction, decision in explainer.decisions.items():
        if decision.comparisons:
            assert decision.comparisons[-1].better is instruction
            assert all(comparison.rule for comparison in decision.comparisons)


@given(async_modules(grouped=True), st.sampled_from(CONFIGS[:5]))
@settings(max_examples=150)
def test_groups_stay_together_or_are_refused(text: str, options: dict[str, Any]) -> None:
    module = parse_module(text)
    scheduling = scheduling_of(module, options)
    try:
        schedule_and_report(scheduling, PassContext())
    except PassRefused:
        return
    assert violations(module, scheduling.scheduler.tracker) == []


@given(async_modules(), st.sampled_from(CONFIGS))
@settings(max_examples=40)
def test_a_schedule_computes_the_same(text: str, options: dict[str, Any]) -> None:
    reference = Reference(parse_module(text), RunSettings(seeds=1))
    module = parse_module(text)
    try:
        schedule_and_report(scheduling_of(module, options), PassContext())
    except PassRefused:
        assert options.get("top_down_scheduling")
    assert reference.compare(module) is None


@pytest.mark.slow
def test_schedules_of_the_corpus_are_valid(corpus_entries: list[CorpusEntry]) -> None:
    """Every module that has asynchronous operations, with both presets."""
    failures: list[str] = []
    scheduled = computed = 0
    for entry in corpus_entries:
        if entry.verdict != "ok" or entry.facts["instructions"] >= 1_000:
            continue
        text = entry.text()
        if not any(word in text for word in ("-start(", " send(", " recv(")):
            continue
        for preset in ("xla-generic", "xla-gpu"):
            module = parse_module(text)
            if verify_module(module, ANY_TARGET):
                continue
            if not module.is_scheduled:
                create_pass("hlo-memory-scheduler", {}).run(module, PassContext())
            before, _ = clone_module(module)
            scheduling = scheduling_of(module, {"preset": preset})
            try:
                schedule_and_report(scheduling, PassContext())
            except PassRefused:
                continue
            if not scheduling.computations():
                continue
            scheduled += 1
            broken = violations(module, scheduling.scheduler.tracker)
            failures += [f"{entry.id} {preset}: {violation}" for violation in broken]
            reference = Reference(before, RunSettings(seeds=1, steps=20_000, memory=1 << 22))
            try:
                mismatch = reference.compare(module)
            except RunError:  # of the module as it was
                continue
            computed += 1
            if mismatch is not None:
                failures.append(f"{entry.id} {preset}: {mismatch.reason}")
    assert failures == []
    assert scheduled > 100
    assert computed > 50


@given(async_modules(), st.integers(16, 300))
@settings(max_examples=60)
def test_a_hard_memory_limit_is_kept_or_refused(text: str, limit: int) -> None:
    module = parse_module(text)
    options = {"memory_limit": limit, "hard_memory_limit": True, "copy_overlap_limit": 2}
    scheduling = scheduling_of(module, options)
    before = scheduling.orders()
    try:
        changed = schedule_and_report(scheduling, PassContext())
    except PassRefused as error:
        refusal = error
    else:
        assert changed == (scheduling.orders() != before)
        assert scheduling_of(module, options).scheduler.life.peak <= limit  # measured anew
        assert violations(module, scheduling.scheduler.tracker) == []
        return
    assert "no order that needs at most" in refusal.message
    assert refusal.help is not None
    assert "alive there: %" in refusal.help
