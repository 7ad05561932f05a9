"""The comparison order of XLA's latency-hiding scheduler, straight from its description: which of
two ready nodes is better, and by which rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from hloopt.analysis.gpu_async import starts_slice_update
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.scheduling.resources.resource import Hazard

if TYPE_CHECKING:
    from tests.scheduling.rules.plain_scheduler import PlainScheduler

Opinion = Callable[[int, int], int]
"""Positive where the first of two nodes is better, negative where the second is."""


def by(key: Callable[[int], Any]) -> Opinion:
    """The opinion that the larger key is better."""
    return lambda a, b: (key(a) > key(b)) - (key(a) < key(b))


def better(plain: PlainScheduler, a: int, b: int) -> tuple[int, str]:
    """The better of two nodes and the rule that says so."""
    for name, opinion in rules(plain):
        sign = opinion(a, b)
        if sign:
            return (a if sign > 0 else b), name
    raise AssertionError("nodes have different positions")


def rules(plain: PlainScheduler) -> Iterator[tuple[str, Opinion]]:
    """The rules of a configuration in order."""
    yield from _hints(plain)
    target = (*_gpu(plain), ("kForceDelayAfterTarget", _same_side(plain, plain.delay_after_target)))
    if plain.config.force_delay_over_memory_pressure:
        yield from target
        yield from _memory(plain)
    else:
        yield from _memory(plain)
        yield from target
    yield from _operations(plain)
    yield from _last(plain)


def _same_side(plain: PlainScheduler, delayed: set[int]) -> Opinion:
    """Bottom up what is delayed is chosen last, top down first: the place is the same."""
    return by(lambda n: (n in delayed) == plain.top_down)


def _hints(plain: PlainScheduler) -> Iterator[tuple[str, Opinion]]:
    yield "kForceEarly", by(lambda n: (n in plain.force_early) != plain.top_down)
    yield "kForceDelay", _same_side(plain, plain.force_delay)
    sign = 1 if plain.top_down else -1
    yield "kForceDelayPriority", by(lambda n: sign * plain.priority[n])
    preferences = plain.preferences

    def prefers(a: int, b: int) -> int:
        return by(preferences.__getitem__)(a, b) if {a, b} <= {*preferences} else 0

    yield "kPreference", prefers


def _gpu(plain: PlainScheduler) -> Iterator[tuple[str, Opinion]]:
    config = plain.config
    if config.preset != "xla-gpu":
        return
    use = plain.use
    copies = plain.limit("memcpy")
    if config.enable_selective_resources and use.left.get("memcpy", copies) < copies:
        yield "kPreferComputeForD2DMemcpyOverlap", by(plain.is_valuable)
    goes_early = (
        config.collective_start_as_early_as_possible
        and config.aggressive_scheduling_policies
        and config.parallel_collective_overlap_limit > 1
    )

    def unless_one_occupies(opinion: Opinion) -> Opinion:
        def of_two(a: int, b: int) -> int:
            return 0 if goes_early and (plain.occupies(a) or plain.occupies(b)) else opinion(a, b)

        return of_two

    def is_free(node: int) -> bool:
        return plain.releases(node) and not use.is_constrained(node)

    def depth(a: int, b: int) -> int:
        return by(plain.depth.__getitem__)(a, b) if is_free(a) and is_free(b) else 0

    if goes_early:
        yield "kDelayAsyncStartForCompute", unless_one_occupies(by(lambda n: not is_free(n)))
        yield "kDelayAsyncStartForDepth", unless_one_occupies(depth)
    if not plain.top_down:
        yield (
            "kDelayMoveToHostAsyncStart",
            unless_one_occupies(by(lambda n: not starts_slice_update(plain.nodes[n]))),
        )


def _memory(plain: PlainScheduler) -> Iterator[tuple[str, Opinion]]:
    limit = plain.memory_limit
    if limit is None or plain.usage() <= limit // 2:
        return
    if plain.usage() >= limit:
        if plain.config.depth_based_memory_pressure_reduction:
            yield "kNoIncreaseMemoryOverLimit", by(lambda n: -min(plain.outlook(n)[0], 1))
            yield "kDepthOverLimit", by(plain.graph_depth.__getitem__)
        yield "kDecreaseMemoryOverLimit", by(lambda n: -plain.outlook(n)[0])
    yield "kMemoryPeakOverLimit", by(lambda n: plain.outlook(n)[1] + plain.usage() <= limit)


def _operations(plain: PlainScheduler) -> Iterator[tuple[str, Opinion]]:
    config, now, ready, use = plain.config, plain.now, plain.ready_time, plain.use
    if config.enable_schedule_by_structure:
        flags = plain.is_done if plain.top_down else plain.is_start
        yield "kDelayAsyncStartOfSamePreference", by(lambda n: not flags(n))
    if plain.top_down:
        yield "kScheduleDone", by(lambda n: plain.is_start(n) and plain.occupies(n))
    else:
        yield "kScheduleDone", by(lambda n: plain.occupies(n) and not _should_wait(plain, n))
    yield "kDelayDoneOfForceDelayedAsyncStart", _dones_of_delayed(plain)

    def held(node: int) -> float:
        ends = plain.uses_hazard(node, "release", Hazard.NONEXTENDABLE)
        return max(now - ready[node], 0) if ends else 0

    yield "kReleaseNonextendable", by(held)
    if config.enable_release_start_policy:

        def is_due(node: int) -> bool:
            released = plain.use.resources(node, "release")
            return ready[node] <= now and "collective-permute" in released

        yield "kScheduleStart", by(lambda n: (is_due(n), ready[n] if is_due(n) else 0))
    is_aggressive = config.aggressive_scheduling_policies

    def may_wait(node: int) -> bool:
        return not (
            plain.releases(node) and not plain.async_depth[node] and not use.is_constrained(node)
        )

    if is_aggressive and config.prioritize_async_depth_over_stall:
        yield "kStartAtZeroDepth", by(may_wait)
    yield "kLessStall", by(lambda n: -max(ready[n] - now, 0))
    if config.resource_serializing:
        yield "kLessSerialResourceConflict", by(lambda n: -plain.serial_conflicts(n))
    if is_aggressive and not config.prioritize_async_depth_over_stall:
        yield "kStartAtZeroDepth", by(may_wait)
    yield "kFreeBackedupResource", by(lambda n: plain.releases(n) and use.is_constrained(n))


def _last(plain: PlainScheduler) -> Iterator[tuple[str, Opinion]]:
    config = plain.config
    is_aggressive = config.aggressive_scheduling_policies
    if is_aggressive:
        yield "kAsyncDepth", by(plain.async_depth.__getitem__)
        if plain.becoming_ready:
            yield "kAvoidWaste", _least_waste(plain)
    before, after = plain.unlocking
    yield "kUnlockDone", by(lambda n: any(map(before, after(n))))
    if config.enable_selective_resources and not plain.selective_releasers:
        yield "kNotValuableForSelectiveOverlap", _not_to_be_kept(plain)
    if is_aggressive:
        yield (
            "kCreatesMoreReadyNodes",
            by(lambda n: sum(plain.waiting[other] == 1 for other, _ in plain.ahead[n])),
        )
    limit = plain.memory_limit
    if limit is not None and plain.usage() > limit // 2:
        yield "kDecreaseMemory", by(lambda n: plain.outlook(n)[0] < 0)
    yield "kOriginalOrder", by(lambda n: -n if plain.top_down else n)


def _should_wait(plain: PlainScheduler, done: int) -> bool:
    """Whether a send-done to the host would be reached while its send waits for others."""
    instruction = plain.nodes[done]
    if instruction.opcode != "send-done" or "send-host" not in plain.use.resources(done, "occupy"):
        return False
    send = plain.number[instruction.operands[0]]
    others = [(node, latency) for node, latency in plain.successors[send] if node != done]
    if any(plain.ready_time[node] < 0 for node, _ in others):
        return False
    finish = max((plain.ready_time[node] + latency for node, latency in others), default=0)
    own = max(latency for node, latency in plain.successors[send] if node == done)
    return finish - plain.now > own


def _dones_of_delayed(plain: PlainScheduler) -> Opinion:
    nodes = plain.nodes

    def is_delayed(node: int) -> bool:
        start = plain.number[nodes[node].operands[0]]
        return plain.is_start(start) and start in plain.force_delay

    def of_two(a: int, b: int) -> int:
        if not (plain.is_done(a) and plain.is_done(b)) or nodes[a].opcode != nodes[b].opcode:
            return 0
        return by(lambda n: is_delayed(n) == plain.top_down)(a, b)

    return of_two


def _least_waste(plain: PlainScheduler) -> Opinion:
    def waste(node: int) -> float:
        return abs(min(plain.becoming_ready) - plain.now - plain.cost[node])

    def of_two(a: int, b: int) -> int:
        sign = by(lambda n: -waste(n))(a, b)
        return 0 if sign and plain.releases(a if sign > 0 else b) else sign

    return of_two


def _not_to_be_kept(plain: PlainScheduler) -> Opinion:
    def is_kept(node: int) -> bool:
        others = [plain.hops[other] for other in plain.ready if other != node]
        most = plain.config.max_hops_to_closest_selective_overlap
        return plain.is_valuable(node) and min(others, default=1 << 60) <= most

    return by(lambda n: not is_kept(n))


def keeps_order(plain: PlainScheduler, node: int) -> bool:
    """Whether a node's group stays in its order."""
    note = frontend_attribute(plain.nodes[node], "keep_original_sequence_order_in_group")
    return note == "true"
