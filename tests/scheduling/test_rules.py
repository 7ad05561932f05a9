"""The table of rules, and the count of what each decided."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from tests.scheduling.asynchronous_programs import random_program
from tests.scheduling.programs import GATHER, fresh_state, scheduled

from hloopt.analysis.latency import FixedModel
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.explain import Explainer
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.rules.chain import chain_of
from hloopt.scheduling.rules.ready_order import ReadyOrder
from hloopt.text import parse_module


def chain(**options: Any) -> list[str]:
    return [rule.reason for rule in chain_of(SchedulerConfig(**options).resolved())]


def test_every_rule_has_a_name_of_xla_and_a_meaning() -> None:
    rules = chain_of(SchedulerConfig(preset="xla-gpu"))
    assert all(rule.reason.startswith("k") and rule.meaning for rule in rules)
    counts = Counter(rule.reason for rule in rules)
    assert {reason for reason, count in counts.items() if count > 1} == {"kStartAtZeroDepth"}


def test_the_rules_of_a_target_go_before_those_about_operations_or_before_memory_too() -> None:
    target, memory, done = "kDelayMoveToHostAsyncStart", "kDecreaseMemoryOverLimit", "kScheduleDone"
    usual = chain(preset="xla-gpu")
    assert usual.index(memory) < usual.index(target) < usual.index(done)
    first = chain(preset="xla-gpu", force_delay_over_memory_pressure=True)
    assert first.index(target) < first.index(memory) < first.index(done)
    assert target not in chain()


@pytest.mark.parametrize("depth_first", [False, True])
def test_a_start_at_depth_zero_is_looked_at_once(*, depth_first: bool) -> None:
    config = SchedulerConfig(
        preset="xla-gpu", prioritize_async_depth_over_stall=depth_first
    ).resolved()
    module = parse_module(scheduled(GATHER))
    state = fresh_state(ModuleScheduling.of(module, config, FixedModel()), module.entry)
    applied = [rule.reason for rule in ReadyOrder(state).rules]
    assert applied.count("kStartAtZeroDepth") == 1
    is_before = applied.index("kStartAtZeroDepth") < applied.index("kLessStall")
    assert is_before == depth_first


@pytest.mark.parametrize("options", [{}, {"preset": "xla-gpu", "memory_limit": 64}])
@pytest.mark.parametrize("seed", range(4))
def test_decisions_are_counted_by_the_rule_that_made_them(
    seed: int, options: dict[str, Any]
) -> None:
    """The explainer knows the rule of a choice between two; those by the last rules may be between
    peers, which are not counted."""
    module = parse_module(random_program(seed))
    config = SchedulerConfig(**options).resolved()
    scheduling = ModuleScheduling.of(module, config, FixedModel())
    scheduler = scheduling.scheduler
    explainer = scheduler.explainer = Explainer(lambda _: True)
    scheduling.schedule_by_rules(scheduling.computations(), {})
    chosen = [d for d in explainer.decisions.values() if d.comparisons and d.group is None]
    rules = chain(**options)
    first = rules[: rules.index("kAsyncDepth")]
    between_two = Counter(d.comparisons[0].rule for d in chosen if len(d.comparisons) == 1)
    known = Counter({rule: between_two[rule] for rule in first})
    assert known.total()
    assert known <= scheduler.decisions
    assert scheduler.decisions.total() <= len(chosen)


def test_the_count_is_a_statistic_of_the_pass() -> None:
    context = PassContext()
    create_pass("latency-hiding-scheduler").run(parse_module(scheduled(GATHER)), context)
    assert context.statistics["decisions by kScheduleDone"] == 1
    assert context.statistics["decisions by kLessStall"] == 2


@pytest.mark.parametrize(
    ("options", "applies"),
    [
        ({}, False),
        ({"memory_limit": 8}, False),
        ({"depth_based_memory_pressure_reduction": True}, False),
        ({"memory_limit": 8, "depth_based_memory_pressure_reduction": True}, True),
    ],
)
def test_depth_counts_over_the_limit_where_both_are_asked_for(
    options: dict[str, Any], applies: bool
) -> None:
    config = SchedulerConfig(**options)
    state: Any = SimpleNamespace(config=config)  # the rules read no more of it
    found = {
        rule.reason: rule.applies(state) for rule in chain_of(config) if "Limit" in rule.reason
    }
    assert found["kNoIncreaseMemoryOverLimit"] is found["kDepthOverLimit"] is applies
    assert found["kDecreaseMemoryOverLimit"] is ("memory_limit" in options)
