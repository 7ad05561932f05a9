"""The result of a search, as data for JSON."""

from __future__ import annotations

from typing import Any

from hloopt.reports.optimization.findings import OptimizationFindings
from hloopt.reports.schedule.comparison_record import schedule_change_to_json


def optimization_to_json(found: OptimizationFindings) -> dict[str, Any]:
    """All that is known; bytes, and times in the unit of the schedule."""
    before, after = found.allocated or (None, None)
    return {
        "module": found.outcome.name,
        "changed": found.outcome.changed,
        "schedule": None if found.schedule is None else schedule_change_to_json(found.schedule),
        "allocated": {"before": before, "after": after},
        "limit": found.limit,
        "fits": found.fits,
        "decisions": found.decisions,
        "reasons": found.reasons,
        "tried": found.tried,
        "iterations": found.iterations,
        "seed": found.seed,
        "notes": [*found.outcome.result.notes, *found.notes],
    }
