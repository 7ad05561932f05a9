"""Changed shardings and what they cost as data for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hloopt.cost_models import cost_model_to_json
from hloopt.reports.sharding.what_if import Figures, WhatIf
from hloopt.sharding.changes import Change


def what_if_to_json(report: WhatIf) -> dict[str, Any]:
    """The report as plain data. Times are in `unit`, sizes in bytes."""
    return {
        "module": report.module,
        "partitions": report.partitions,
        "changes": [_change_to_json(change) for change in report.changes],
        **cost_model_to_json(report.cost_model),
        **report.unit.to_json(),
        "before": _figures_to_json(report.before),
        "after": _figures_to_json(report.after),
        "notes": report.notes,
    }


def _change_to_json(change: Change) -> dict[str, Any]:
    return {"name": change.name, "before": change.before or None, "after": change.after or None}


def _figures_to_json(figures: Figures) -> dict[str, Any]:
    return {
        "collectives": {kind: asdict(amount) for kind, amount in figures.kinds.items()},
        **asdict(figures.total),
        "peak": figures.peak,
        "exposed": figures.exposed,
        "makespan": figures.makespan,
    }
