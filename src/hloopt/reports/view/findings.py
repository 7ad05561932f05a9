"""The contents of a page of a module: its reports, or why one of them is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hloopt.analysis.stage import Stage
from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import HloError
from hloopt.ir.module import Module
from hloopt.reports.stage_notices import cost_notices
from hloopt.reports.view.changes import changes_by_name
from hloopt.reports.view.columns import Extras
from hloopt.reports.view.page import Reports, view_page
from hloopt.targets import Target, load_target

if TYPE_CHECKING:
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.timeline import Timeline

_NEEDS_TIMES = "no times without a target"
_TARGETS = "give --target NAME: `hloopt targets` lists them"


def view_of(
    module: Module,
    before: Module | None,
    cost_model: CostModelChoice,
    *,
    begin: Callable[[str], None] = lambda _: None,
) -> str:
    """The page of a module; `before` is what it is compared with.

    `begin` is told which part is at work. Raises HloError for a cost model that is none.
    """
    target = None if cost_model.target is None else load_target(cost_model.target)
    diff = None
    if before is not None:
        from hloopt.reports.diff.comparison import NAMES, diff_modules

        begin("comparison")
        diff = diff_modules(before, module, NAMES)
    pages: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, make in (
        ("schedule", lambda: _schedule(module, cost_model)),
        ("memory", lambda: _memory(module, target)),
        ("cost", lambda: _cost(module, target, cost_model)),
    ):
        begin(name)
        _add(name, make, pages, missing)
    begin("page")
    changes = {} if diff is None else changes_by_name(diff)
    reports = Reports(pages, missing, _facts(module), cost_notices(Stage.of(module)), diff)
    return view_page(module, _extras(module, cost_model, changes), reports)


def _add(
    name: str, make: Callable[[], str], pages: dict[str, str], missing: dict[str, str]
) -> None:
    try:
        pages[name] = make()
    except HloError as error:
        missing[name] = f"{error.message}; {error.help}" if error.help else error.message


def _facts(module: Module) -> list[tuple[str, str]]:
    return [
        ("instructions", f"{module.instruction_count():,}"),
        ("computations", f"{len(module.computations):,}"),
        ("replicas", f"{module.replica_count:,}"),
        ("partitions", f"{module.num_partitions:,}"),
        ("scheduled", "yes" if module.is_scheduled else "no"),
    ]


def _extras(module: Module, cost_model: CostModelChoice, changes: dict[str, str]) -> Extras:
    alive = times = None
    if module.is_scheduled:
        from hloopt.reports.memory.model import memory_report

        buffers = memory_report(module).live_at_peak
        alive = frozenset(buffer.name.partition("{")[0] for buffer in buffers)
    if cost_model.is_choice:
        from hloopt.reports.schedule.run import run_times

        times = run_times(module, cost_model)
    return Extras(times, alive, changes)


def find_timeline(module: Module, cost_model: CostModelChoice) -> tuple[ScheduleFindings, Timeline]:
    """A run of the module by its schedule. Raises HloError without a model of time."""
    if not cost_model.is_choice:
        raise HloError(_NEEDS_TIMES, help=_TARGETS)
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.run import ScheduleSettings
    from hloopt.reports.schedule.timeline import Timeline

    found = ScheduleFindings.of(module, ScheduleSettings(cost_model=cost_model))
    return found, Timeline.of(found)


def _schedule(module: Module, cost_model: CostModelChoice) -> str:
    from hloopt.reports.schedule.page import schedule_page

    return schedule_page(*find_timeline(module, cost_model))


def _memory(module: Module, target: Target | None) -> str:
    from hloopt.reports.memory.model import MemoryFindings
    from hloopt.reports.memory.page import memory_page

    return memory_page(MemoryFindings.of(module, target).model)


def _cost(module: Module, target: Target | None, cost_model: CostModelChoice) -> str:
    if target is None:
        raise HloError(_NEEDS_TIMES, help=_TARGETS)
    from hloopt.reports.cost.findings import analyze_cost
    from hloopt.reports.cost.measured import MeasuredTimes
    from hloopt.reports.cost.page import cost_page

    return cost_page(analyze_cost(module, target, MeasuredTimes.of(module, cost_model)))
