"""The report on times as data for JSON."""

from __future__ import annotations

from typing import Any

from hloopt.cost_models import cost_model_to_json
from hloopt.reports.schedule.latency import LatencyReport, TimedRow


def latency_to_json(report: LatencyReport) -> dict[str, Any]:
    """The report as plain data: times in `unit`, `time` of one run and `total` of all."""
    return {
        "module": report.module,
        "preset": report.preset,
        **cost_model_to_json(report.model),
        **report.unit.to_json(),
        "total": report.total,
        "instructions": [_row_to_json(row) for row in report.instructions],
        "operations": [
            {**_row_to_json(row), "done": row.done.name if row.done else None}
            for row in report.operations
        ],
        "guessed_share": report.guessed_share,
        "table_times": report.table_times and report.table_times.to_json(),
        "guesses": len(report.guesses()),
        "notices": list(report.notices),
        "notes": report.notes,
    }


def _row_to_json(row: TimedRow) -> dict[str, Any]:
    return {
        "name": row.instruction.name,
        "kind": row.kind,
        "computation": row.instruction.parent.name,
        "runs": row.runs.times if row.runs.is_known else None,
        "time": row.time.cycles,
        "total": row.total,
        "from": row.time.origin.value,
        "error_class": row.time.origin.error_class.value,
    }
