"""The report on overlap as data for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hloopt.cost_models import cost_model_to_json
from hloopt.reports.schedule.overlap import OverlapReport, matched


def overlap_to_json(report: OverlapReport) -> dict[str, Any]:
    """The report as plain data.

    `duration` and `exposed` are in `unit`; `seconds` and `exposed_seconds` are the same in seconds,
    null where units are abstract.
    """
    return {
        "module": report.module,
        "order": report.order,
        "is_scheduled": report.is_scheduled,
        "preset": report.preset,
        **cost_model_to_json(report.cost_model),
        **report.unit.to_json(),
        "bytes": report.bytes,
        "hidden_bytes": report.hidden_bytes,
        "guessed_share": report.guessed_share,
        "table_times": report.table_times and report.table_times.to_json(),
        "exposed": report.exposed,
        "exposed_seconds": _seconds(report, report.exposed),
        "state_bytes": report.state_bytes,
        "computations": [
            {
                **asdict(row),
                "seconds": _seconds(report, row.duration),
                "exposed_seconds": _seconds(report, row.exposed),
            }
            for row in report.rows
        ],
        "notices": list(report.notices),
        "assumptions": list(report.notes),
    }


def overlap_change_to_json(before: OverlapReport, after: OverlapReport) -> dict[str, Any]:
    """The rows that belong together in reports before and after passes."""
    return {
        "matched": [
            [None if row is None else row.computation for row in pair]
            for pair in matched(before, after)
        ],
        "more_state_bytes": after.state_bytes - before.state_bytes,
    }


def _seconds(report: OverlapReport, cycles: float) -> float | None:
    seconds = report.unit.seconds
    return None if seconds is None else cycles * seconds
