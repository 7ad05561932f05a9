"""Layouts of values over devices as data for JSON."""

from __future__ import annotations

from typing import Any

from hloopt.ir.shapes.shape import format_shape
from hloopt.reports.sharding.values import CutValue, ValuesReport
from hloopt.sharding.layouts import picture


def values_to_json(report: ValuesReport) -> dict[str, Any]:
    """The report as plain data, with all values."""
    return {
        "module": report.module,
        "devices": report.devices,
        "mesh": report.mesh or None,
        "parameters": [_value_to_json(value) for value in report.parameters],
        "results": [_value_to_json(value) for value in report.results],
        "values": [_value_to_json(value) for value in report.values],
        "redundant_bytes": sum(v.layout.redundant_bytes for v in report.parameters),
        "notes": report.notes,
    }


def _value_to_json(value: CutValue) -> dict[str, Any]:
    layout = value.layout
    is_known = layout.shards is not None
    return {
        "name": value.name,
        "role": value.role,
        "op_name": value.origin,
        "source": value.source,
        "sharding": layout.sharding,
        "shape": format_shape(layout.shape, layout=False),
        "part_shape": format_shape(layout.part, layout=False) if is_known else None,
        "counts": None if layout.shards is None else list(layout.shards.counts),
        "copies": layout.copies if is_known else None,
        "bytes_per_device": layout.bytes_per_device if is_known else None,
        "redundant_bytes": layout.redundant_bytes if is_known else None,
        "devices": None if layout.shards is None else picture(layout.shards),
    }
