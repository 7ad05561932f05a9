"""The plot of a program as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hloopt.reports.skeleton.plot import Step
from hloopt.reports.skeleton.program import Skeleton


def skeleton_to_json(found: Skeleton) -> dict[str, Any]:
    """All of the plot; docs/json.md describes the keys."""
    replicas, partitions = found.devices
    return {
        "module": found.module.name,
        "replicas": replicas,
        "partitions": partitions,
        "total": asdict(found.total),
        "steps": [_step_to_json(step) for step in found.steps],
    }


def _step_to_json(step: Step) -> dict[str, Any]:
    return {
        "kind": step.kind.value,
        "text": step.text,
        "op_name": step.place or None,
        "name": step.name,
        "count": step.count if step.is_counted else None,
        **asdict(step.amounts),
        "steps": [_step_to_json(inner) for inner in step.below],
    }
