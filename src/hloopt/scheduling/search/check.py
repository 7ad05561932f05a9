"""Whether an order keeps the rules, as the scheduler itself sees them."""

from __future__ import annotations

from hloopt.ir import Computation
from hloopt.scheduling.engine.scheduler import Scheduler
from hloopt.scheduling.state.state import SchedulingState


def initial_state(computation: Computation, scheduler: Scheduler) -> SchedulingState:
    """The machine that scheduled a computation, before its first step."""
    graph, config = scheduler.graphs[computation], scheduler.config
    return SchedulingState(graph, config, scheduler.tracker, scheduler.life, config.limit)


def broken_rule(computation: Computation, scheduler: Scheduler) -> str | None:
    """The fault of a computation's present order; None if nothing is.

    It goes through the steps of the machine that schedules. O(edges + uses of buffers).
    """
    state = initial_state(computation, scheduler)
    graph = state.graph
    order = [graph.number[instruction] for instruction in computation.instructions]
    if not state.top_down:
        order.reverse()
    for node in order:
        name = graph.instructions[node].name
        if state.ready.waiting[node]:
            return f"'%{name}' would be on the wrong side of what it depends on"
        if not state.resources.fits(node):
            return f"'%{name}' would exceed an overlap limit"
        state.take(node)
    return None
