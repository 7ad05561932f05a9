"""The latency-hiding scheduler."""

from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import LatencyHidingScheduler

__all__ = ["LatencyHidingScheduler"]
