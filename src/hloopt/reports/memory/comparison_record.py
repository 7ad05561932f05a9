"""The memory of two modules compared, as data for JSON."""

from __future__ import annotations

from typing import Any

from hloopt.memory.model import MemoryReport
from hloopt.reports.memory.comparison import Partners, doubts_of, peak_change
from hloopt.reports.memory.record import buffer_to_json, spaces_to_json, statistics_to_json
from hloopt.reports.sources import StackTable


def memory_change_to_json(
    before: MemoryReport, after: MemoryReport, partners: Partners | None = None
) -> dict[str, Any]:
    """XLA's statistics of both, and the buffers that entered and left the peak, in bytes."""
    return {
        "before": statistics_to_json(before.statistics),
        "after": statistics_to_json(after.statistics),
        "spaces": {"before": spaces_to_json(before), "after": spaces_to_json(after)},
        "doubts": doubts_of(before, after),
        **peak_change_to_json(before, after, partners),
    }


def peak_change_to_json(
    before: MemoryReport, after: MemoryReport, partners: Partners | None = None
) -> dict[str, Any]:
    """The buffers that entered and left the peak, and the stacks they refer to."""
    change = peak_change(before, after, partners)
    stacks = StackTable()
    return {
        "entered_peak": [buffer_to_json(buffer, stacks) for buffer in change.entered],
        "left_peak": [buffer_to_json(buffer, stacks) for buffer in change.left],
        "stacks": stacks.stacks,
    }
