"""The chain of rules: all of them in their order, when each applies and what it reads of a node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.resource import Hazard
from hloopt.scheduling.rules import rules
from hloopt.scheduling.rules.gpu_rules import GPU_RULES
from hloopt.scheduling.rules.rule import Applies, Fact, Rule, TargetRules
from hloopt.scheduling.state.state import SchedulingState

_NO_TARGET_RULES = TargetRules()


def chain_of(
    config: SchedulerConfig, target_rules: TargetRules = _NO_TARGET_RULES
) -> tuple[Rule, ...]:
    """All rules of a configuration in their order, whether they apply or not."""
    of_preset = GPU_RULES if config.preset == "xla-gpu" else ()
    target = (*target_rules.early, *of_preset, *_AFTER_TARGET)
    operations = (*_OPERATIONS, *target_rules.late, *_LAST)
    if config.force_delay_over_memory_pressure:
        return (*_HINTS, *target, *_MEMORY, *operations)
    return (*_HINTS, *_MEMORY, *target, *operations)


# -- when a rule applies --------------------------------------------------------------------------


def _is_aggressive(state: SchedulingState) -> bool:
    return bool(state.config.aggressive_scheduling_policies)


def _minds_memory(state: SchedulingState) -> bool:
    return state.config.minds_memory


def _minds_depth(state: SchedulingState) -> bool:
    return _minds_memory(state) and state.config.depth_based_memory_pressure_reduction


def _depth_before_stall(state: SchedulingState) -> bool:
    return _is_aggressive(state) and state.config.prioritize_async_depth_over_stall


def _stall_before_depth(state: SchedulingState) -> bool:
    return _is_aggressive(state) and not state.config.prioritize_async_depth_over_stall


def _has_nonextendable(state: SchedulingState) -> bool:
    return any(r.hazard is Hazard.NONEXTENDABLE for r in state.tracker.resources)


def _any(flags: Callable[[SchedulingState], Sequence[object]]) -> Applies:
    return lambda state: any(flags(state))


# -- what a rule reads of a node ------------------------------------------------------------------


def _nothing(state: SchedulingState, node: int) -> Hashable:
    return None


def _by(facts: Callable[[SchedulingState], Sequence[Hashable]]) -> Fact:
    return lambda state, node: facts(state)[node]


def _constrained_release(state: SchedulingState, node: int) -> Hashable:
    depth, uses = state.direction.async_depth[node], state.graph.uses[node]
    return state.facts.releases_any[node] and (bool(depth), uses)


# -- the tables -----------------------------------------------------------------------------------

_HINTS = (
    Rule(
        "kForceEarly",
        rules.force_early,
        applies=_any(lambda s: s.graph.force_early),
        fact=_by(lambda s: s.graph.force_early),
    ),
    Rule(
        "kForceDelay",
        rules.force_delay,
        applies=_any(lambda s: s.graph.force_delay),
        fact=_by(lambda s: s.graph.force_delay),
    ),
    Rule(
        "kForceDelayPriority",
        rules.force_delay_priority,
        applies=_any(lambda s: s.graph.delay_priority),
        fact=_by(lambda s: s.graph.delay_priority),
    ),
    Rule(
        "kPreference",
        rules.preference,
        applies=lambda s: bool(s.graph.preference),
        fact=lambda s, n: s.graph.preference.get(n),
        is_pairwise=rules.prefers_some,
    ),
)

_MEMORY = (
    Rule(
        "kNoIncreaseMemoryOverLimit",
        rules.no_increase_over_limit,
        applies=_minds_depth,
        fact=_nothing,
    ),
    Rule(
        "kDepthOverLimit",
        rules.depth_over_limit,
        applies=_minds_depth,
        fact=_by(lambda s: s.graph.graph_depth),
    ),
    Rule(
        "kDecreaseMemoryOverLimit",
        rules.decrease_memory_over_limit,
        applies=_minds_memory,
        fact=_nothing,
    ),
    Rule(
        "kMemoryPeakOverLimit",
        rules.memory_peak_over_limit,
        applies=_minds_memory,
        fact=_nothing,
    ),
)

_AFTER_TARGET = (
    Rule(
        "kForceDelayAfterTarget",
        rules.force_delay_after_target,
        applies=lambda s: bool(s.graph.group),
        fact=_by(lambda s: s.graph.delay_after_target),
    ),
)

_OPERATIONS = (
    Rule(
        "kDelayAsyncStartOfSamePreference",
        rules.delay_async_start,
        applies=lambda s: s.config.enable_schedule_by_structure,
        fact=lambda s, n: (s.graph.is_done[n], s.graph.is_start[n]),
    ),
    Rule("kScheduleDone", rules.schedule_done, fact=rules.done_fact),
    Rule(
        "kDelayDoneOfForceDelayedAsyncStart",
        rules.delay_done_of_delayed_start,
        applies=_any(lambda s: s.facts.has_delayed_start),
        fact=rules.delayed_done_fact,
        is_pairwise=rules.has_delayed_starts,
    ),
    Rule(
        "kReleaseNonextendable",
        rules.release_nonextendable,
        applies=_has_nonextendable,
        fact=lambda s, n: n if s.facts.releases_nonextendable[n] else None,
    ),
    Rule(
        "kScheduleStart",
        rules.schedule_start,
        applies=lambda s: s.config.enable_release_start_policy,
        fact=lambda s, n: n if rules.PERMUTE in s.graph.releases[n] else None,
    ),
    Rule(
        "kStartAtZeroDepth",
        rules.start_at_zero_depth,
        applies=_depth_before_stall,
        fact=_constrained_release,
    ),
    Rule("kLessStall", rules.less_stall, fact=_nothing),
    Rule(
        "kLessSerialResourceConflict",
        rules.less_serial_conflict,
        applies=lambda s: s.config.resource_serializing,
        fact=_by(lambda s: s.graph.uses),
    ),
    Rule(
        "kStartAtZeroDepth",
        rules.start_at_zero_depth,
        applies=_stall_before_depth,
        fact=_constrained_release,
    ),
    Rule("kFreeBackedupResource", rules.free_backedup_resource, fact=_constrained_release),
    Rule("kAsyncDepth", rules.async_depth, applies=_is_aggressive),
    Rule(
        "kAvoidWaste",
        rules.avoid_waste,
        applies=_is_aggressive,
        is_pairwise=rules.has_some_releases,
    ),
    Rule("kUnlockDone", rules.unlock_done),
)

_LAST = (
    Rule(
        "kNotValuableForSelectiveOverlap",
        rules.not_valuable_for_selective_overlap,
        applies=lambda s: s.config.enable_selective_resources,
        is_pairwise=rules.may_be_kept,
    ),
    Rule("kCreatesMoreReadyNodes", rules.creates_more_ready_nodes, applies=_is_aggressive),
    Rule("kDecreaseMemory", rules.decrease_memory, applies=_minds_memory),
    Rule("kOriginalOrder", rules.original_order),
)
