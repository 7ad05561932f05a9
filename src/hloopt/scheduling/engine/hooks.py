"""Hooks of the scheduler for a target that is not built in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.resources.gpu_tracker import GpuResourceTracker
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.scheduling.rules.rule import TargetRules


def _tracker_of_preset(config: SchedulerConfig) -> ResourceTracker:
    """The resources of a configuration's preset."""
    is_gpu = config.preset == "xla-gpu"
    return GpuResourceTracker(config) if is_gpu else ResourceTracker(config)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetHooks:
    """Rules, resources and graph edits of a target; by default there are none of its own."""

    rules: TargetRules = TargetRules()  # noqa: RUF009  # it cannot change
    tracker: Callable[[SchedulerConfig], ResourceTracker] = _tracker_of_preset
    """A maker of the resources that instructions use, given the resolved configuration."""
    edit_graph: Callable[[ScheduleGraph], None] | None = None
    """An edit of the graph of each computation before depths are computed: hints of nodes, their
    costs, and further edges (`ScheduleGraph.add_edge`)."""


NO_HOOKS = TargetHooks()
