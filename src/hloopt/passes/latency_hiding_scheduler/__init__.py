"""The latency-hiding scheduler."""

from hloopt.passes.latency_hiding_scheduler.schedule_module import LatencyHidingScheduler

__all__ = ["LatencyHidingScheduler"]
