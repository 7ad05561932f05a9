"""The contents of a page of a module: its reports, or why one of them is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hloopt.analysis.stage import Stage
from hloopt.cost_models import CostModelChoice, needs_target
from hloopt.diagnostics import HloError
from hloopt.ir.clone import clone_module
from hloopt.ir.module import Module
from hloopt.reports.schedule.run import Preset, ScheduleSettings, cycle_unit, run_times
from hloopt.reports.stage_notices import cost_notices
from hloopt.reports.view.changes import changes_by_name
from hloopt.reports.view.columns import Extras
from hloopt.reports.view.page import Reports, view_page
from hloopt.targets import Target, load_target

if TYPE_CHECKING:
    from hloopt.reports.diff.findings import ModuleDiff
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.timeline import Timeline
    from hloopt.sharding.origins import Origins

Begin = Callable[[str], None]
"""Told which part of a page is at work."""


def view_of(
    module: Module,
    diff: ModuleDiff | None,
    cost_model: CostModelChoice,
    preset: Preset | None = None,
    *,
    origins: Origins | None = None,
    begin: Begin = lambda _: None,
) -> str:
    """The page of a module, with `diff`, the difference to one before, if there is one, and the
    `origins` of its collectives, if they are known.

    The module stays as it is. Near-linear. Raises HloError for a bad target or file of the model
    of time.
    """
    target = None if cost_model.target is None else load_target(cost_model.target)
    found = _Findings(module, target, cost_model, preset)
    for name, make in (
        ("schedule", found.schedule),
        ("memory", found.memory),
        ("cost", found.cost),
    ):
        begin(name)
        try:
            found.pages[name] = make()
        except HloError as error:
            found.missing[name] = ": ".join(filter(None, (error.message, error.help)))
    begin("page")
    extras = found.extras({} if diff is None else changes_by_name(diff), origins or {})
    notices = cost_notices(Stage.of(module))
    reports = Reports(found.pages, found.missing, _facts(module), notices, diff)
    return view_page(module, extras, reports)


def find_timeline(
    module: Module, cost_model: CostModelChoice, preset: Preset | None = None
) -> tuple[ScheduleFindings, Timeline]:
    """A run of a module by its schedule; one without a schedule is given one on a copy.

    Raises HloError where `cost_model` names neither a model of time nor a target.
    """
    if not cost_model.is_choice:
        raise needs_target("a timeline")
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.timeline import Timeline

    if not module.is_scheduled:
        module, _ = clone_module(module)
    found = ScheduleFindings.of(module, ScheduleSettings(cost_model=cost_model, preset=preset))
    return found, Timeline.of(found)


@dataclass(slots=True)
class _Findings:
    """The reports on a module, as far as they can be made."""

    module: Module
    target: Target | None
    cost_model: CostModelChoice
    preset: Preset | None
    pages: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    alive: frozenset[str] | None = None
    """The names of what is alive at the peak of a module with a schedule."""

    def schedule(self) -> str:
        from hloopt.reports.schedule.page import schedule_page

        return schedule_page(*find_timeline(self.module, self.cost_model, self.preset))

    def memory(self) -> str:
        from hloopt.reports.memory.model import MemoryFindings
        from hloopt.reports.memory.page import memory_page

        found = MemoryFindings.of(self.module, self.target)
        if self.module.is_scheduled:
            self.alive = found.analysis.alive_at_peak()
        return memory_page(found.model)

    def cost(self) -> str:
        if self.target is None:
            raise needs_target("the cost by flops per byte")
        from hloopt.reports.cost.findings import analyze_cost
        from hloopt.reports.cost.measured import MeasuredTimes
        from hloopt.reports.cost.page import cost_page

        times = MeasuredTimes.of(self.module, self.cost_model)
        return cost_page(analyze_cost(self.module, self.target, times))

    def extras(self, changes: dict[str, str], origins: Origins) -> Extras:
        if not self.cost_model.is_choice:
            return Extras(alive=self.alive, changes=changes, origins=origins)
        times = run_times(self.module, self.cost_model)
        return Extras(times, cycle_unit(times), self.alive, changes, origins)


def _facts(module: Module) -> list[tuple[str, str]]:
    return [
        ("instructions", f"{module.instruction_count():,}"),
        ("computations", f"{len(module.computations):,}"),
        ("replicas", f"{module.replica_count:,}"),
        ("partitions", f"{module.num_partitions:,}"),
        ("scheduled", "yes" if module.is_scheduled else "no"),
    ]
