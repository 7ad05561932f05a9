"""The reason why latency-hiding-scheduler puts instructions where it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloopt.ir import Instruction, Module
from hloopt.ir.find import find_instructions
from hloopt.ir.schedule import set_schedule
from hloopt.pass_framework.base import PassContext
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.reports.console.units import CycleUnit
from hloopt.reports.prepared import PreparedModule
from hloopt.reports.schedule.order import ensure_schedule
from hloopt.reports.schedule.run import ScheduleSettings, cycle_unit
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.explain import Decision, Explainer
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.times import model_of


@dataclass(frozen=True, slots=True)
class Place:
    """The place in its computation where an instruction stands."""

    position: int
    """Counted from 1."""
    count: int
    before: Instruction | None
    """The instruction right before it; None if it is the first."""
    after: Instruction | None

    def is_beside_the_same(self, other: Place) -> bool:
        """Whether its neighbours are those of another place."""
        return self.before is other.before and self.after is other.after


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason why one instruction is where it is."""

    instruction: Instruction
    own: Place
    """By the order of the module."""
    scheduled: Place
    """By the scheduler."""
    decision: Decision | None
    """None where the scheduler left the computation alone."""


@dataclass(frozen=True, slots=True)
class ScheduleExplanation:
    """The scheduler's decisions about some instructions of a module."""

    module: Module
    notices: tuple[str, ...]
    """The subject of the explanation, where it is not the module as it was given."""
    order: str
    """`schedule`, or who found one for a module without."""
    config: SchedulerConfig
    unit: CycleUnit
    explanations: list[Explanation]
    meanings: dict[str, str]
    """The meanings of the words for rules and obstacles in the decisions."""

    @classmethod
    def of(
        cls, module: Module, settings: ScheduleSettings, names: Sequence[str]
    ) -> ScheduleExplanation:
        """Schedule a module as latency-hiding-scheduler would, and put it back as it was.

        One without a schedule first gets that of XLA's default memory scheduler. Near-linear.
        Raises HloError for an unknown name or a bad choice of a model, PassRefused where
        the scheduler refuses.
        """
        prepared = PreparedModule.of(module)
        module = prepared.module
        instructions = find_instructions(module, names)
        order = ensure_schedule(module)
        config = settings.config_for(module)
        scheduling = ModuleScheduling.of(module, config, model_of(config, module))
        explainer = Explainer(set(instructions).__contains__)
        scheduling.scheduler.explainer = explainer
        orders = scheduling.orders()
        own = [_place(instruction) for instruction in instructions]
        try:
            schedule_and_report(scheduling, PassContext(wants_remarks=False))
            scheduled = [_place(instruction) for instruction in instructions]
        finally:
            set_schedule(module, orders)
        explanations = [
            Explanation(instruction, before, after, explainer.decisions.get(instruction))
            for instruction, before, after in zip(instructions, own, scheduled, strict=True)
        ]
        unit = cycle_unit(scheduling.scheduler.model)
        return cls(
            *(module, prepared.notices, order, config, unit, explanations, explainer.meanings)
        )


def _place(instruction: Instruction) -> Place:
    order = list(instruction.parent.instructions)
    position = order.index(instruction)
    return Place(
        position + 1,
        len(order),
        order[position - 1] if position else None,
        order[position + 1] if position + 1 < len(order) else None,
    )
