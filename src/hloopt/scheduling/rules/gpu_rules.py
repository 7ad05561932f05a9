"""The preferences of XLA:GPU, which go before the rules that all targets share."""

from __future__ import annotations

from collections.abc import Hashable

from hloopt.analysis.gpu_async import starts_slice_update
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.resource import Hazard
from hloopt.scheduling.rules.rule import Nodes, Rule
from hloopt.scheduling.state.state import SchedulingState


def prefer_compute_for_copies(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer valuable work while a copy is in flight."""
    remaining = state.resources.remaining
    is_open = any(
        resource.hazard is Hazard.SELECTIVE and remaining[number] < (resource.limit or 0)
        for number, resource in enumerate(state.tracker.resources)
    )
    if not is_open:
        return nodes
    return [node for node in nodes if state.graph.is_valuable[node]] or nodes


def delay_start_for_compute(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Avoid a start while its resource is not short: it then begins early in the program."""
    if _some_occupy(state, nodes):
        return nodes
    return [node for node in nodes if not _is_free_start(state, node)] or nodes


def delay_start_for_depth(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer the deepest of several such starts."""
    if _some_occupy(state, nodes) or not all(_is_free_start(state, node) for node in nodes):
        return nodes
    deepest = max(state.graph.depth[node] for node in nodes)
    return [node for node in nodes if state.graph.depth[node] == deepest]


def delay_move_to_host(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Avoid what begins to write a slice of an array, on the host for example."""
    if _starts_early(state.config) and _some_occupy(state, nodes):
        return nodes
    instructions = state.graph.instructions
    return [node for node in nodes if not starts_slice_update(instructions[node])] or nodes


def _dones_win(config: SchedulerConfig) -> bool:
    """Whether a done is chosen before others by the first rule that looks at it after these here,
    so that what they say of pairs without a done does not matter where there is one."""
    return not (
        config.top_down_scheduling
        or config.force_delay_over_memory_pressure
        or config.enable_schedule_by_structure
        or config.aggressive_flexible_annotation_scheduling
    )


def _starts_early(config: SchedulerConfig) -> bool:
    return (
        bool(config.aggressive_scheduling_policies)
        and config.collective_start_as_early_as_possible
        and config.parallel_collective_overlap_limit > 1
    )


def _has_slice_updates(state: SchedulingState) -> bool:
    return not state.top_down and any(starts_slice_update(i) for i in state.graph.instructions)


def _start_fact(state: SchedulingState, node: int) -> Hashable:
    facts = state.facts
    return facts.releases_any[node], facts.occupies_any[node], state.graph.uses[node]


def _is_free_start(state: SchedulingState, node: int) -> bool:
    return state.facts.releases_any[node] and not state.resources.is_constrained(node)


def _some_occupy(state: SchedulingState, nodes: Nodes) -> bool:
    occupies = state.facts.occupies_any
    return any(occupies[node] for node in nodes)


def _compares_with_dones(state: SchedulingState, nodes: Nodes) -> bool:
    config = state.config
    return _starts_early(config) and not _dones_win(config) and _some_occupy(state, nodes)


def _goes_early(state: SchedulingState) -> bool:
    return _starts_early(state.config)


GPU_RULES = (
    Rule(
        "kPreferComputeForD2DMemcpyOverlap",
        prefer_compute_for_copies,
        applies=lambda s: s.config.enable_selective_resources,
    ),
    Rule(
        "kDelayAsyncStartForCompute",
        delay_start_for_compute,
        applies=_goes_early,
        fact=_start_fact,
        is_pairwise=_compares_with_dones,
    ),
    Rule(
        "kDelayAsyncStartForDepth",
        delay_start_for_depth,
        applies=_goes_early,
        fact=lambda s, n: s.graph.depth[n] if s.facts.releases_any[n] else None,
        is_pairwise=_compares_with_dones,
    ),
    Rule(
        "kDelayMoveToHostAsyncStart",
        delay_move_to_host,
        applies=_has_slice_updates,
        fact=lambda s, n: starts_slice_update(s.graph.instructions[n]),
        is_pairwise=_compares_with_dones,
    ),
)
"""The rules of XLA:GPU, in order."""
