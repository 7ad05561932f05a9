"""The report on costs as data for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hloopt.reports.cost.findings import CostGroup, CostReport, CostRow, grouped, source_notes_of
from hloopt.reports.sources import StackTable


def cost_to_json(report: CostReport, by: str, *, depth: int = 3) -> dict[str, Any]:
    """The report as plain data, all groups; times in seconds, null without a target.

    A group that is one instruction says which: its computation, opcode, shape and op_name, and
    the lines of the program it runs at.
    """
    total = report.total
    has_times = report.target is not None
    rows = {row.name: row for row in report.rows} if by == "instruction" else {}
    stacks = StackTable()
    notes = source_notes_of(report) if by == "source" else []
    return {
        "module": report.module,
        "target": report.target.name if report.target else None,
        "flops": total.flops,
        "transcendentals": total.transcendentals,
        "bytes_accessed": total.bytes_accessed,
        "bytes_read": total.bytes_read,
        "bytes_written": total.bytes_written,
        "unfused_bytes": total.unfused_bytes,
        "intensity": total.intensity,
        "seconds": report.seconds if has_times else None,
        "compute_seconds": report.compute_seconds if has_times else None,
        "memory_seconds": report.seconds - report.compute_seconds if has_times else None,
        "measured": None
        if report.measured is None
        else {"source": report.measured.source, "seconds": report.measured_seconds},
        "by": by,
        "groups": [
            _group_to_json(report, group, rows.get(group.label), stacks)
            for group in grouped(report, by, depth=depth)
        ],
        "stacks": stacks.stacks,
        "notices": list(report.notices),
        "assumptions": report.assumptions + notes,
    }


def _group_to_json(
    report: CostReport, group: CostGroup, row: CostRow | None, stacks: StackTable
) -> dict[str, Any]:
    data: dict[str, Any] = {"label": group.label}
    if row is not None:
        data |= {key: getattr(row, key) for key in ("computation", "opcode", "shape", "op_name")}
        data["sources"] = [
            stacks.source_to_json(line) | {"runs": runs}
            for line, runs in report.sources.of(row.instruction).items()
        ]
    data |= asdict(group)
    data["runs"], data["runs_known"] = group.runs
    if report.target is None:
        data["seconds"] = data["compute_seconds"] = None
    return data
