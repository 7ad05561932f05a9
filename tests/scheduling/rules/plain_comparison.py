"""The scheduler beside the plain one: every choice, every order, every peak."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from tests.scheduling.mixed_programs import random_times
from tests.scheduling.rules.plain_resources import KINDS
from tests.scheduling.rules.plain_scheduler import Blocked, Choice, PlainScheduler

from hloopt.analysis.latency import FixedModel, LatencyModel, TableModel
from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation, Instruction, Module
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.explain import Explainer
from hloopt.scheduling.engine.hooks import NO_HOOKS, TargetHooks
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.resources.resource import Hazard
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.text import parse_module

Hazards = Mapping[str, Hazard]


class HazardTracker(ResourceTracker):
    """A target with hazards of its own, on which some instructions are of no value."""

    def __init__(self, config: SchedulerConfig, hazards: Hazards, seed: int) -> None:
        super().__init__(config)
        self._seed = seed
        self.resources = [
            resource._replace(hazard=hazards.get(kind, Hazard.UNSHAREABLE))
            for kind, resource in zip(KINDS, self.resources, strict=False)
        ] + self.resources[len(KINDS) :]

    def shared_by(self, start: Instruction, done: Instruction) -> tuple[int, ...]:
        if not (self.is_start(start) and self.is_done(done)):
            return ()
        used = (number for number, _ in self.uses(done))
        return tuple(n for n in used if self.resources[n].hazard is Hazard.SHAREABLE)

    def is_valuable(self, instruction: Instruction) -> bool:
        return Random(f"{self._seed} {instruction.name}").random() < 0.6


def choices_of(
    scheduling: ModuleScheduling, computation: Computation, preferences: Mapping[str, float]
) -> list[Choice]:
    """The choices by which the scheduler orders a computation, which gets that order."""
    scheduler = scheduling.scheduler
    explainer = scheduler.explainer = Explainer(lambda _: True)
    preferred = {i: preferences[i.name] for i in computation.instructions if i.name in preferences}
    order = scheduler.order(computation, preferred)
    computation.reorder(order)
    scheduler.tracker.forget(computation)
    return [
        Choice(
            decision.instruction.name,
            decision.step,
            decision.now,
            [(r.instruction.name, r.ready_time, r.obstacle) for r in decision.ready],
            [(c.better.name, c.worse.name, c.rule) for c in decision.comparisons],
            decision.group,
        )
        for decision in explainer.decisions.values()
    ]


def assert_as_plain(
    text: str,
    options: dict[str, Any],
    *,
    times: int | None = None,
    hazards: Hazards | None = None,
    preferred: float = 0.0,
) -> None:
    """Every choice, every order and every peak of a module is that of the plain scheduler.

    `times`: seeds costs and latencies. `preferred`: the part of the nodes that have preferences.
    """
    config = SchedulerConfig(**options).resolved()
    module = parse_module(text)
    model: LatencyModel = FixedModel()
    if times is not None:
        model = TableModel(random_times(module, times), model)
    hooks = NO_HOOKS
    if hazards:
        hooks = TargetHooks(tracker=lambda config: HazardTracker(config, hazards, times or 0))
    scheduling = ModuleScheduling.of(module, config, model, hooks)
    scheduler = scheduling.scheduler
    preferences = random_preferences(module, preferred)
    is_valuable = scheduler.tracker.is_valuable
    of_resources = {**(hazards or {})}
    if config.preset == "xla-gpu" and config.enable_selective_resources:
        of_resources["memcpy"] = Hazard.SELECTIVE
    for computation in scheduling.computations():
        plain = PlainScheduler(
            computation,
            config,
            model,
            scheduler.life,
            scheduler.hazards,
            of_resources=of_resources,
            preferences=preferences,
            is_valuable=is_valuable,
        )
        try:
            order = [instruction.name for instruction in plain.order()]
        except Blocked:
            with pytest.raises(PassRefused):
                choices_of(scheduling, computation, preferences)
            return
        assert choices_of(scheduling, computation, preferences) == plain.choices
        assert [instruction.name for instruction in computation.instructions] == order
        assert scheduler.life.states[computation].peak == plain.peak


def random_preferences(module: Module, part: float) -> dict[str, float]:
    rng = Random(1)
    names = [instruction.name for instruction in module.instructions()]
    return {name: float(rng.randrange(4)) for name in names if rng.random() < part}
