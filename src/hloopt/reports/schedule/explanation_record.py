"""The reasons for places in a schedule as data for JSON."""

from __future__ import annotations

from typing import Any

from hloopt.cost_models import cost_model_to_json
from hloopt.reports.schedule.explanation import Explanation, Place, ScheduleExplanation
from hloopt.scheduling.engine.explain import Decision


def explanation_to_json(found: ScheduleExplanation) -> dict[str, Any]:
    """All of it. Times are in `unit`, from where scheduling began."""
    return {
        "module": found.module.name,
        "order": found.order,
        "preset": found.config.preset,
        **cost_model_to_json(found.config.model_choice),
        "top_down": found.config.top_down_scheduling,
        **found.unit.to_json(),
        "explanations": [_one_to_json(explanation) for explanation in found.explanations],
        "meanings": found.meanings,
        "notices": list(found.notices),
    }


def _one_to_json(explanation: Explanation) -> dict[str, Any]:
    own, scheduled = explanation.own, explanation.scheduled
    return {
        "instruction": explanation.instruction.name,
        "computation": explanation.instruction.parent.name,
        "module_place": _place_to_json(own),
        "scheduler_place": _place_to_json(scheduled),
        "same_neighbours": own.is_beside_the_same(scheduled),
        "decision": _decision_to_json(explanation.decision) if explanation.decision else None,
    }


def _place_to_json(place: Place) -> dict[str, Any]:
    return {
        "position": place.position,
        "of": place.count,
        "before": place.before and place.before.name,
        "after": place.after and place.after.name,
    }


def _decision_to_json(decision: Decision) -> dict[str, Any]:
    return {
        "step": decision.step,
        "now": decision.now,
        "group": decision.group,
        "ready": [
            {
                "instruction": node.instruction.name,
                "ready_time": node.ready_time,
                "obstacle": node.obstacle or None,
            }
            for node in decision.ready
        ],
        "comparisons": [
            {"better": c.better.name, "worse": c.worse.name, "rule": c.rule}
            for c in decision.comparisons
        ],
    }
