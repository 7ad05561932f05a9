"""Records of the latency-hiding scheduler and of the passes around it."""

from conformance_lib.scheduling.runner import is_scheduling_record, run_scheduling

__all__ = ["is_scheduling_record", "run_scheduling"]
