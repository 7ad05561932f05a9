"""Preconditions of rules on a module, beside the doubts that all checks share."""

from __future__ import annotations

from hloopt.checks.doubts import OPTIMIZED, Doubt, not_partitioned
from hloopt.checks.view import View


def not_scheduled(view: View) -> Doubt | None:
    """The order of instructions is not that of their execution."""
    scheduled = view.subject.stage.scheduled
    if scheduled.holds is True:
        return not_partitioned(view)
    return Doubt(f"the module is not scheduled: {scheduled.evidence}", OPTIMIZED)
