"""Two schedules side by side: how long they take, and how long they wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hloopt.diagnostics import HloError
from hloopt.ir.module import Module
from hloopt.ir.opcode import STARTS
from hloopt.reports.units import CycleUnit, human_change

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.cost_models import CostModelChoice
    from hloopt.simulation import Simulation


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """Runs of a module before and after a change."""

    before: Simulation | None
    """None where it had no schedule."""
    after: Simulation
    unit: CycleUnit
    cost_model: CostModelChoice
    """Where times are from."""


def compare_schedules(
    before: Module, after: Module, cost_model: CostModelChoice | None = None
) -> ScheduleChange | None:
    """Runs of two modules; None where there is no schedule after, or no asynchronous operation.

    With the limits of a plain `hloopt schedule`, and its times if no model is given. Linear in
    what runs. Raises HloError for a bad choice of a model.
    """
    if before is after or not after.is_scheduled:
        return None
    if not any(i.opcode in STARTS for module in (before, after) for i in module.instructions()):
        return None  # before anything large is imported
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.schedule_run import (
        ScheduleSettings,
        cycle_unit,
        run_module,
    )

    settings = ScheduleSettings(cost_model=cost_model or CostModelChoice())
    config = settings.config_for(after)
    try:
        new = run_module(after, settings, config)
        old = run_module(before, settings, config) if before.is_scheduled else None
    except HloError:  # of a module that makes no sense: others say so
        if cost_model not in (None, CostModelChoice()):  # or of what somebody asked for
            raise
        return None
    if not any(any(run.operations()) for run in (old, new) if run is not None):
        return None
    return ScheduleChange(old, new, cycle_unit(config, new.model), settings.cost_model)


def render_schedule_change(change: ScheduleChange, console: Console) -> None:
    """Print a table of each figure before and after."""
    from rich.text import Text

    from hloopt.reports.table import ReportTable

    unit = change.unit
    table = ReportTable()
    abstract = " (cycles, XLA's constants)" if unit.seconds is None else ""
    table.add_column(f"schedule{abstract}", style="bold")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right")
    for name, old, new in _rows(change):
        style = "" if old is None or old == new else "green" if new < old else "red"
        table.add_row(
            name,
            "-" if old is None else unit.text(old),
            unit.text(new),
            Text(_change(old, new), style=style),
        )
    console.print(table)
    if unit.seconds is not None:
        from hloopt.cost_models import describe

        console.print(Text(f"* times by {describe(change.cost_model)}", style="dim"))


def _rows(change: ScheduleChange) -> Iterator[tuple[str, float | None, float]]:
    """Names with figures before and after."""
    before, after = change.before, change.after
    yield "makespan", None if before is None else before.makespan, after.makespan
    yield "exposed", None if before is None else before.exposed, after.exposed
    old = {} if before is None else before.exposed_by_kind()
    new = after.exposed_by_kind()
    for kind in dict.fromkeys((*old, *new)):
        figures = old.get(kind, 0.0), new.get(kind, 0.0)
        if any(figures):
            yield f"  {kind.value}", None if before is None else figures[0], figures[1]


def _change(old: float | None, new: float) -> str:
    if old is None:
        return ""
    if old == new:
        return "="
    return human_change(old, new) if old else "new"


def totals_to_json(simulation: Simulation) -> dict[str, Any]:
    """The figures of a whole run, in cycles."""
    return {
        "makespan": simulation.makespan,
        "exposed": simulation.exposed,
        "exposed_by_kind": {
            kind.value: cycles for kind, cycles in simulation.exposed_by_kind().items()
        },
    }


def schedule_change_to_json(change: ScheduleChange) -> dict[str, Any]:
    """The figures of both, in cycles."""
    from hloopt.cost_models import cost_model_to_json

    return {
        **cost_model_to_json(change.cost_model),
        "seconds_per_cycle": change.unit.seconds,
        "before": None if change.before is None else totals_to_json(change.before),
        "after": totals_to_json(change.after),
    }
