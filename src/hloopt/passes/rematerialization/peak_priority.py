"""The algorithm `peak-priority`: lower the peak, again and again, until it is low enough."""

from __future__ import annotations

from hloopt.diagnostics import counted
from hloopt.ir import Computation
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.passes.rematerialization.items import Item
from hloopt.passes.rematerialization.search import is_dead
from hloopt.passes.rematerialization.state import State
from hloopt.passes.rematerialization.walk import Walk

_LEAST_COST_LIMIT = 1 << 30
_LEAST_PROGRESS = 0.01


def rematerialize_peak(state: State, computation: Computation, limit: int) -> bool:
    """Bring the peak of a computation below `limit` bytes; whether anything changed.

    Updates the peaks of the computation and of what it calls. Two walks along the schedule for each
    instruction that was the peak.
    """
    before = state.peaks.get(computation, 0)
    if before <= limit or computation in state.done:
        return False
    cost_limit = max(_LEAST_COST_LIMIT, limit)
    walk = Walk(state, computation, limit, cost_limit=cost_limit, at_peak=True)
    state.done.add(computation)
    changed = False
    while True:
        peak, place = _find_peak(walk)
        state.peaks[computation] = walk.ways.peak = peak
        if changed and limit < peak and before - peak < _LEAST_PROGRESS * before:
            state.warn_once("progress", _warning(computation, before, peak))
        if peak <= limit or not _lower(walk, place):
            break
        changed = True
        before = peak
    if peak > limit:
        _explain(walk, place)
    walk.finish()
    return changed


def _warning(computation: Computation, before: int, peak: int) -> str:
    return (
        f"rematerialization makes too little progress: the peak of %{computation.name} went from "
        f"{before:,} to {counted(peak, 'byte')}; a larger memory_limit_bytes makes it faster"
    )


def _find_peak(walk: Walk) -> tuple[int, Item | None]:
    """The peak in bytes, and the first instruction that reaches it. O(operands and slots)."""
    peak, place = 0, walk.tracker.sequence.first
    walk.restart()
    for item in walk.tracker.sequence:
        walk.tracker.begin(item)
        memory = walk.memory(item)
        if memory > peak:
            peak, place = memory, item
        walk.tracker.end()
    return peak, place


def _lower(walk: Walk, place: Item | None) -> bool:
    """Place instructions until one has led to a change; False where none does."""
    walk.restart()
    for item in walk.tracker.sequence:
        walk.state.check_time()
        walk.tracker.begin(item)
        if not is_dead(item, walk.tracker):
            changed = item is place and _reduce(walk, item)
            changed |= _reduce_callees(walk, item)
            if changed:
                return True
        walk.end(item)
    return False


def _reduce(walk: Walk, item: Item) -> bool:
    """Rematerialize until the peak is lower; whether anything changed."""
    peak = walk.ways.peak
    longest = 1
    changed = False
    while walk.memory(item) >= peak and longest <= walk.state.options.block_size_limit:
        way, _ = walk.search.best(1, longest)
        if way is None:
            longest *= 2
        elif walk.apply(way, item):
            changed = True
            longest = 1
        else:
            break
    return changed


def _reduce_callees(walk: Walk, item: Item) -> bool:
    """Rematerialize in what the current instruction calls; whether anything changed."""
    instruction = item.instruction
    if instruction.opcode not in CONTROL_FLOW_CALLERS or walk.memory(item) <= walk.limit:
        return False
    changed = False
    for called in dict.fromkeys(instruction.called):
        left = max(0, walk.limit - walk.tracker.memory)
        changed |= rematerialize_peak(walk.state, called, left)
    return changed


def _explain(walk: Walk, place: Item | None) -> None:
    """Say why what is alive at the peak stays."""
    if place is None or not walk.state.context.wants_remarks:
        return
    walk.restart()
    for item in walk.tracker.sequence:
        walk.tracker.begin(item)
        if item is place:
            walk.explain(item)
            return
        walk.end(item)
