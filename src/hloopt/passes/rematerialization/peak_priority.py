"""The algorithm `peak-priority`: lower the peak, again and again, until it is low enough."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.diagnostics import counted
from hloopt.ir import Computation
from hloopt.passes.rematerialization.items import Item
from hloopt.passes.rematerialization.profile import MemoryProfile
from hloopt.passes.rematerialization.readers import is_dead
from hloopt.passes.rematerialization.state import State
from hloopt.passes.rematerialization.walk import Walk

_LEAST_COST_LIMIT = 1 << 30
_LEAST_PROGRESS = 0.01


def rematerialize_peak(state: State, computation: Computation, limit: int) -> bool:
    """Bring the peak of a computation below `limit` bytes; whether anything changed.

    Updates the peaks of the computation and of what it calls. O(log instructions) for each
    instruction that was the peak, and the way in the schedule from one to the next.
    """
    before = state.peaks.get(computation, 0)
    if before <= limit or computation in state.done:
        return False
    cost_limit = max(_LEAST_COST_LIMIT, limit)
    walk = Walk(state, computation, limit, cost_limit=cost_limit, at_peak=True)
    state.done.add(computation)
    profile = MemoryProfile(walk.tracker, state.callees_memory)
    callers = _Callers(walk, profile)
    changed = False
    while True:
        state.check_time()
        peak, place = profile.peak()
        state.peaks[computation] = walk.ways.peak = peak
        if changed and limit < peak and before - peak < _LEAST_PROGRESS * before:
            state.warn_once("progress", _warning(computation, before, peak))
        if peak <= limit or place is None or not _lower(walk, callers, place):
            break
        changed = True
        before = peak
        profile.update()
    if peak > limit:
        _explain(walk, place)
    walk.finish()
    return changed


def _warning(computation: Computation, before: int, peak: int) -> str:
    return (
        f"rematerialization makes too little progress: the peak of %{computation.name} went from "
        f"{before:,} to {counted(peak, 'byte')}; a larger memory_limit_bytes makes it faster"
    )


def _lower(walk: Walk, callers: _Callers, place: Item) -> bool:
    """Go along the schedule until one instruction has led to a change; False where none does.

    Only the peak and callers can.
    """
    if callers.reduce(lambda caller: caller < place):
        return True
    changed = False
    if not is_dead(place, walk.tracker):
        walk.go_to(place)
        changed = _reduce(walk, place)
        changed |= callers.reduce(lambda caller: caller is place)
    return changed or callers.reduce(lambda caller: place < caller)


def _reduce(walk: Walk, item: Item) -> bool:
    """Rematerialize until the peak is lower; whether anything changed."""
    peak = walk.ways.peak
    shortest = longest = 1
    changed = False
    while walk.memory(item) >= peak and longest <= walk.state.options.block_size_limit:
        way = walk.search.best(shortest, longest)
        if way is None:
            shortest, longest = longest + 1, 2 * longest
        elif walk.apply(way, item):
            changed = True
            shortest = longest = 1
        else:
            break
    return changed


class _Callers:
    """The instructions with callees that may still be changed, in the order of the schedule."""

    def __init__(self, walk: Walk, profile: MemoryProfile) -> None:
        self._walk = walk
        self._profile = profile

    def reduce(self, is_meant: Callable[[Item], bool]) -> bool:
        """Rematerialize in what the first of some callers calls; whether anything changed.

        Only callers above the limit come into question.
        """
        for item in filter(is_meant, self._open()):
            if not is_dead(item, self._walk.tracker) and self._reduce(item):
                return True
        return False

    def _open(self) -> list[Item]:
        """The callers with a callee that no algorithm has gone through."""
        done = self._walk.state.done
        self._profile.update()
        callers = self._profile.callers
        return sorted(item for item in callers if not done.issuperset(item.instruction.called))

    def _reduce(self, item: Item) -> bool:
        walk = self._walk
        instruction = item.instruction
        changed = False
        memory = self._profile.memory(item)
        if memory + walk.state.callees_memory(instruction) <= walk.limit:
            return False
        for called in dict.fromkeys(instruction.called):
            changed |= rematerialize_peak(walk.state, called, max(0, walk.limit - memory))
        if changed:
            self._profile.recount_callers()
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
