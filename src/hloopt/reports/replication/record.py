"""The report on replication as data for JSON."""

from __future__ import annotations

from typing import Any

from hloopt.analysis.replication import ALL, Agreement
from hloopt.reports.replication.findings import (
    Amounts,
    RedundantGroup,
    ReplicationReport,
    leaf_agreements,
)


def replication_to_json(report: ReplicationReport) -> dict[str, Any]:
    """The report as plain data, with all groups and all instructions."""
    analysis = report.analysis
    return {
        "axis": report.axis.value,
        "devices": analysis.device_count,
        "total": _amounts_to_json(report.total),
        "same_on_all": _amounts_to_json(report.on_all),
        "same_in_sets": _amounts_to_json(report.in_sets),
        "redundant": [_group_to_json(group) for group in report.groups],
        "instructions": [
            {
                "name": instruction.name,
                "computation": instruction.parent.name,
                "opcode": instruction.opcode.value,
                "leaves": [
                    {"index": list(index), "same_on": _agreement_to_json(agreement)}
                    for index, agreement in leaf_agreements(analysis, instruction)
                ],
            }
            for instruction in report.module.instructions()
            if analysis.agreements(instruction) is not None
        ],
        "notes": report.notes,
    }


def _amounts_to_json(amounts: Amounts) -> dict[str, int]:
    return {
        "instructions": amounts.instructions,
        "flops": amounts.flops,
        "bytes_accessed": amounts.bytes_accessed,
    }


def _group_to_json(group: RedundantGroup) -> dict[str, Any]:
    return {
        "origin": group.origin,
        "opcode": group.opcode,
        "shape": group.shape,
        "same_on": _agreement_to_json(group.agreement),
        "flops": group.flops,
        "bytes_accessed": group.bytes_accessed,
        "runs": group.runs,
        "runs_known": group.runs_known,
        "instructions": len(group.names),
        "names": group.names,
        "sources": list(group.lines),
    }


def _agreement_to_json(agreement: Agreement) -> str | list[list[int]]:
    if agreement is ALL:
        return "all"
    return [list(devices) for devices in agreement.sets] or "none"
