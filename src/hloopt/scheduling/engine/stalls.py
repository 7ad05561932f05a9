"""The reason why latencies stay exposed: what kept the scheduler from putting more work under
them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.ir import Instruction
from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.resources.resource import Resource
from hloopt.scheduling.rules.ready_order import ReadyOrder
from hloopt.scheduling.state.state import SchedulingState

_MEMORY_RULES = frozenset(
    (
        *("kNoIncreaseMemoryOverLimit", "kDepthOverLimit"),
        *("kDecreaseMemoryOverLimit", "kMemoryPeakOverLimit"),
    )
)


@dataclass(slots=True)
class Stalls:
    """The operations that were closed before their latency was over, each with the reason."""

    reasons: dict[Instruction, str] = field(default_factory=dict)
    """By the instruction that was chosen too early: a start, a done top down."""

    def watch(self, state: SchedulingState, order: ReadyOrder) -> None:
        """Look at each choice of one computation, O(groups of equal nodes) where time is lost."""
        graph = state.graph
        closes = graph.is_done if state.top_down else graph.is_start

        def note(node: int) -> None:
            if closes[node]:
                self.reasons.pop(graph.instructions[node], None)
                if state.clock.ready_time[node] > state.clock.now:
                    self.reasons[graph.instructions[node]] = _reason(state, order, node)

        state.on_chosen.append(note)


def _reason(state: SchedulingState, order: ReadyOrder, node: int) -> str:
    graph, instructions = state.graph, state.graph.instructions
    if node in graph.group:
        return f"it is scheduled with its group {graph.group[node]}"
    state.memory.look()
    others = [n for n in order.leaders() if n != node]
    sooner = [n for n in others if state.clock.ready_time[n] < state.clock.ready_time[node]]
    if sooner:
        other = sooner[0]
        _, rule = order.compare(other, node)
        what = "the memory limit" if rule in _MEMORY_RULES else "another rule"
        return f"{what} decided against %{instructions[other].name} ({rule})"
    blocked = order.blocked()
    if blocked:
        other = blocked[0]
        resource = _scarce(state, other)
        limit = resource.limit or 0
        return (
            f"the overlap limit of {resource.name} ({limit}) holds %{instructions[other].name} back"
        )
    side = "after" if state.top_down else "before"
    return f"by dependencies all that was left has to come {side} it{_overwritten(graph, node)}"


def _overwritten(graph: ScheduleGraph, node: int) -> str:
    """The reader that has to come before a start because of its buffer only, in words."""
    reader = graph.overwritten_reader.get(node)
    if reader is None:
        return ""
    return f", %{graph.instructions[reader].name} because it reads what this writes over"


def _scarce(state: SchedulingState, node: int) -> Resource:
    """The resource that a blocked node wants: of which too little is left, or just its first."""
    short = state.resources.shortage(node)
    return short[0] if short else state.tracker.resources[state.resources.needs[node][0][0]]
