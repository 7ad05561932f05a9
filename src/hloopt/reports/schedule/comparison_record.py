"""Two schedules compared, as data for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hloopt.reports.schedule.comparison import ScheduleChange

if TYPE_CHECKING:
    from hloopt.simulation import Simulation


def totals_to_json(simulation: Simulation) -> dict[str, Any]:
    """The figures of a whole run, in the unit of the model."""
    from hloopt.reports.schedule.run import guessed_share
    from hloopt.simulation.table_times import TableTimes

    times = TableTimes.of(simulation)
    return {
        "makespan": simulation.makespan,
        "guessed_share": guessed_share(simulation),
        "table_times": times and times.to_json(),
        "exposed": simulation.exposed,
        "exposed_by_kind": {
            kind.value: cycles for kind, cycles in simulation.exposed_by_kind().items()
        },
    }


def schedule_change_to_json(change: ScheduleChange) -> dict[str, Any]:
    """The figures of both, in `unit`, and why their change is no gain or loss."""
    from hloopt.cost_models import cost_model_to_json

    return {
        "preset": change.preset,
        **cost_model_to_json(change.cost_model),
        **change.unit.to_json(),
        "before": None if change.before is None else totals_to_json(change.before),
        "after": None if change.after is None else totals_to_json(change.after),
        "doubts": list(change.doubts),
        "assumptions": change.notes,
    }
