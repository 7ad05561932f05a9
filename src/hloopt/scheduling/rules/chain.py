"""The chain of rules: all of them in their order, when each applies and what it reads of a node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from hloopt.scheduling.resources.tracker import Hazard
from hloopt.scheduling.rules import rules
from hloopt.scheduling.rules.rules import PERMUTE, Fact, Rule

if TYPE_CHECKING:
    from hloopt.scheduling.state.state import SchedulingState


def _if_set(option: str) -> Callable[[SchedulingState], bool]:
    return lambda state: bool(getattr(state.config, option))


def _is_aggressive(state: SchedulingState) -> bool:
    return bool(state.config.aggressive_scheduling_policies)


def _minds_memory(state: SchedulingState) -> bool:
    return state.config.minds_memory


def _has_hazard(hazard: Hazard) -> Callable[[SchedulingState], bool]:
    return lambda state: any(r.hazard is hazard for r in state.tracker.resources)


def _nothing(state: SchedulingState, node: int) -> Hashable:
    return None


def _by(facts: Callable[[SchedulingState], Sequence[Hashable]]) -> Fact:
    return lambda state, node: facts(state)[node]


def _constrained_release(state: SchedulingState, node: int) -> Hashable:
    return state.releases_any[node] and (bool(state.async_depth[node]), state.graph.uses[node])


def chain_of(state: SchedulingState) -> Iterable[Rule]:
    """All rules in their order, whether they apply or not."""
    config, graph = state.config, state.graph
    zero_depth = Rule(
        "kStartAtZeroDepth", rules.start_at_zero_depth, _is_aggressive, fact=_constrained_release
    )
    depth_first = config.prioritize_async_depth_over_stall
    target = [
        *state.tracker.early_rules(),
        Rule(
            "kForceDelayAfterTarget",
            rules.force_delay_after_target,
            lambda s: s.has_groups,
            fact=_by(lambda s: s.graph.delay_after_target),
        ),
    ]
    memory = [
        Rule(
            "kNoIncreaseMemoryOverLimit",
            rules.no_increase_over_limit,
            lambda s: _minds_memory(s) and s.config.depth_based_memory_pressure_reduction,
            fact=_nothing,
        ),
        Rule(
            "kDepthOverLimit",
            rules.depth_over_limit,
            lambda s: _minds_memory(s) and s.config.depth_based_memory_pressure_reduction,
            fact=_by(lambda s: s.graph.graph_depth),
        ),
        Rule(
            "kDecreaseMemoryOverLimit",
            rules.decrease_memory_over_limit,
            _minds_memory,
            fact=_nothing,
        ),
        Rule("kMemoryPeakOverLimit", rules.memory_peak_over_limit, _minds_memory, fact=_nothing),
    ]
    target_first = config.force_delay_over_memory_pressure
    return (
        Rule(
            "kForceEarly",
            rules.force_early,
            lambda s: any(graph.force_early),
            fact=_by(lambda s: s.graph.force_early),
        ),
        Rule(
            "kForceDelay",
            rules.force_delay,
            lambda s: any(graph.force_delay),
            fact=_by(lambda s: s.graph.force_delay),
        ),
        Rule(
            "kForceDelayPriority",
            rules.force_delay_priority,
            lambda s: any(graph.delay_priority),
            fact=_by(lambda s: s.graph.delay_priority),
        ),
        Rule(
            "kPreference",
            rules.preference,
            lambda s: bool(graph.preference),
            rules.prefers_some,
            fact=lambda s, n: s.graph.preference.get(n),
        ),
        *(target if target_first else memory),
        *(memory if target_first else target),
        Rule(
            "kDelayAsyncStartOfSamePreference",
            rules.delay_async_start,
            _if_set("enable_schedule_by_structure"),
            fact=lambda s, n: (s.graph.is_done[n], s.graph.is_start[n]),
        ),
        Rule("kScheduleDone", rules.schedule_done, fact=rules.done_fact),
        Rule(
            "kDelayDoneOfForceDelayedAsyncStart",
            rules.delay_done_of_delayed_start,
            lambda s: any(s.has_delayed_start),
            rules.has_delayed_starts,
            fact=rules.delayed_done_fact,
        ),
        Rule(
            "kReleaseNonextendable",
            rules.release_nonextendable,
            _has_hazard(Hazard.NONEXTENDABLE),
            fact=lambda s, n: n if s.releases_nonextendable[n] else None,
        ),
        Rule(
            "kScheduleStart",
            rules.schedule_start,
            _if_set("enable_release_start_policy"),
            fact=lambda s, n: n if PERMUTE in s.graph.releases[n] else None,
        ),
        *([zero_depth] if depth_first else []),
        Rule("kLessStall", rules.less_stall, fact=_nothing),
        Rule(
            "kLessSerialResourceConflict",
            rules.less_serial_conflict,
            _if_set("resource_serializing"),
            fact=_by(lambda s: s.graph.uses),
        ),
        *([] if depth_first else [zero_depth]),
        Rule("kFreeBackedupResource", rules.free_backedup_resource, fact=_constrained_release),
        Rule("kAsyncDepth", rules.async_depth, _is_aggressive),
        Rule("kAvoidWaste", rules.avoid_waste, _is_aggressive, rules.has_some_releases),
        Rule("kUnlockDone", rules.unlock_done),
        Rule(
            "kNotValuableForSelectiveOverlap",
            rules.not_valuable_for_selective_overlap,
            _if_set("enable_selective_resources"),
            rules.may_be_kept,
        ),
        Rule("kCreatesMoreReadyNodes", rules.creates_more_ready_nodes, _is_aggressive),
        Rule("kDecreaseMemory", rules.decrease_memory, _minds_memory),
        Rule("kOriginalOrder", rules.original_order),
    )
