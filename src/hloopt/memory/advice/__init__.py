"""Advice on lowering a module's memory: donate, rematerialize, offload to the host, shard."""

from __future__ import annotations

from hloopt.collector import collector_paused
from hloopt.memory.advice.donation import find_donations
from hloopt.memory.advice.idle import IdleBuffers
from hloopt.memory.advice.model import Advice
from hloopt.memory.advice.sharding import find_sharding
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.memory.limit import needed_bytes
from hloopt.memory.model import MemoryReport
from hloopt.targets import Target

__all__ = ["Advice", "advise"]

_WORTH_TRYING = 4  # without a limit: what brings the peak down to so many fifths


def advise(
    analysis: MemoryAnalysis, report: MemoryReport, target: Target | None, limit: int | None = None
) -> Advice:
    """Advice on bringing a module's memory down, to `limit` bytes if there is one.

    Without a limit, or below it, by a fifth of the peak. Times are the least ones on `target`;
    without one there are none, and what moves few bytes is taken for cheap.
    Near-linear in the module, but for the steps: each looks at all positions.
    """
    with collector_paused():
        title = None if target is None else target.title
        if report.peak_instruction is None:
            return Advice(title)
        idle = IdleBuffers(analysis, report.timeline, target)
        goal = report.peak * _WORTH_TRYING // 5
        needed = needed_bytes(report.statistics)
        if limit is not None and needed > limit:
            goal = max(report.peak - (needed - limit), 0)
        advice = Advice(title)
        found = find_donations(analysis, idle.places)
        advice.donations, advice.donated_need, advice.donated_peak = found
        advice.rematerializations, advice.rematerialized_peak = idle.rematerialize(goal)
        advice.obstacles = idle.unrepeatable(analysis.replay.peak_time)
        advice.offloads, advice.offloaded_peak = idle.offload(goal)
        advice.shardings = find_sharding(analysis, idle.places, analysis.replay.peak_time)
        advice.sharded_bound = sum(sharding.saved for sharding in advice.shardings)
        return advice
