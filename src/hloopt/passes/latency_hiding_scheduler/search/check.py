"""Whether an order keeps the rules, as the scheduler itself sees them."""

from __future__ import annotations

from hloopt.ir import Computation
from hloopt.passes.latency_hiding_scheduler.graph import ScheduleGraph
from hloopt.passes.latency_hiding_scheduler.scheduler import Scheduler
from hloopt.passes.latency_hiding_scheduler.state import SchedulingState


def initial_state(computation: Computation, scheduler: Scheduler) -> SchedulingState:
    """The machine that schedules a computation in its present order, before the first step."""
    graph = ScheduleGraph.of(computation, scheduler.model, scheduler.tracker, scheduler.hazards)
    config = scheduler.config
    return SchedulingState(graph, config, scheduler.tracker, scheduler.life, config.memory_limit)


def broken_rule(computation: Computation, scheduler: Scheduler) -> str | None:
    """What is wrong with a computation's present order; None if nothing is.

    It goes through the steps of the machine that schedules. O(edges + uses of buffers).
    """
    state = initial_state(computation, scheduler)
    graph = state.graph
    for node, before in enumerate(graph.predecessors):
        for earlier in before:
            if earlier >= node:
                names = graph.instructions[earlier].name, graph.instructions[node].name
                return f"'%{names[0]}' has to come before '%{names[1]}'"
    nodes = range(len(graph.instructions))
    for node in nodes if state.top_down else reversed(nodes):
        if not state.fits(node):
            return f"'%{graph.instructions[node].name}' would exceed an overlap limit"
        state.take(node)
    return None
