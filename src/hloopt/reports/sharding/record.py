"""Explained collectives as data for JSON."""

from __future__ import annotations

from typing import Any

from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import format_shape
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.reports.sharding.findings import ExplainReport, LineGroup
from hloopt.reports.sources import StackTable
from hloopt.sharding.explain import Confidence, Explanation


def explanations_to_json(report: ExplainReport) -> dict[str, Any]:
    """The report as plain data, with all collectives."""
    stacks = StackTable()
    return {
        "module": report.module,
        "partitions": report.partitions,
        "mesh": report.mesh or None,
        "bytes": report.bytes,
        "confidence": {c.value: report.count(c) for c in Confidence},
        "lines": [_group_to_json(group) for group in report.groups],
        "collectives": [_explanation_to_json(e, stacks) for e in report.explanations],
        "stacks": stacks.stacks,
        "notes": report.notes,
    }


def _group_to_json(group: LineGroup) -> dict[str, Any]:
    return {"source": group.label, "collectives": dict(group.counts), "bytes": group.bytes}


def _explanation_to_json(e: Explanation, stacks: StackTable) -> dict[str, Any]:
    instruction = e.collective.instruction
    warning = e.warning
    return {
        "name": instruction.name,
        "computation": instruction.parent.name,
        "opcode": instruction.opcode.value,
        "shape": format_shape(instruction.shape, layout=False),
        "axes": list(e.axes),
        "group_size": e.collective.group_size,
        "bytes_sent": e.collective.wire,
        "payload_bytes": e.collective.payload,
        "runs": e.runs.times,
        "runs_known": e.runs.is_known,
        "total_bytes_sent": e.bytes,
        "kind": e.cause.kind.value,
        "made_by": None if e.origin is None else _instruction_to_json(e.origin),
        "value": None if e.cause.value is None else e.cause.value.name,
        "from": e.cause.source or None,
        "to": e.cause.target or None,
        "full_rematerialization": e.is_full_remat,
        "warning": None
        if warning is None
        else {"from": warning.source, "to": warning.target, "name": warning.name},
        "avoid": e.cause.avoid or None,
        "confidence": e.confidence.value,
        "candidates": [_instruction_to_json(candidate) for candidate in e.candidates],
        **({} if e.line is None else stacks.source_to_json(e.line)),
    }


def _instruction_to_json(instruction: Instruction) -> dict[str, Any]:
    return {
        "name": instruction.name,
        "computation": instruction.parent.name,
        "opcode": instruction.opcode.value,
        "op_name": op_name_of(instruction),
    }
