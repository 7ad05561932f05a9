"""The algorithm `always`: at each instruction above the limit, as long as something helps."""

from __future__ import annotations

from hloopt.ir import Computation
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.passes.rematerialization.items import Item
from hloopt.passes.rematerialization.state import State
from hloopt.passes.rematerialization.walk import Walk


def rematerialize_always(state: State, computation: Computation, limit: int) -> bool:
    """Bring the memory of a computation below `limit` bytes; whether anything changed.

    What it calls is changed only where nothing around the call helps. Updates the peaks of these
    computations. One walk along the schedule, and a search wherever memory is above the limit.
    """
    if state.peaks.get(computation, 0) <= limit or computation in state.done:
        return False
    walk = Walk(state, computation, limit, cost_limit=limit)
    state.done.add(computation)
    changed = False
    peak = 0
    for item in walk.tracker.sequence:
        state.check_time()
        walk.tracker.begin(item)
        if walk.memory(item) > limit:
            changed |= _reduce(walk, item)
            changed |= _reduce_callees(walk, item)
        if walk.memory(item) > max(limit, peak):
            walk.explain(item)
        peak = max(peak, walk.memory(item))
        walk.end(item)
    state.peaks[computation] = peak
    walk.finish()
    return changed


def _reduce(walk: Walk, item: Item) -> bool:
    """Rematerialize until the current instruction fits; whether anything changed."""
    own = sum(buffer.size for buffer in item.defined)
    if own + walk.state.callees_memory(item.instruction) <= 0:
        return False
    options = walk.state.options
    changed = False
    shortest = longest = 1
    single_effort = block_effort = 0
    while walk.memory(item) > walk.limit:
        way = walk.search.best(shortest, longest)
        effort = walk.search.effort(shortest, longest)
        if longest == 1:
            single_effort += effort
        else:
            block_effort += effort
        if way is None:
            shortest, longest = longest + 1, 2 * longest
        elif walk.apply(way, item):
            changed = True
            shortest = longest = 1
        else:
            break
        if longest > options.block_size_limit:
            break
        if block_effort > options.block_rematerialization_factor * single_effort:
            break
    return changed


def _reduce_callees(walk: Walk, item: Item) -> bool:
    """Rematerialize in what the current instruction calls; whether anything changed."""
    instruction = item.instruction
    state = walk.state
    if instruction.opcode not in CONTROL_FLOW_CALLERS or walk.memory(item) <= walk.limit:
        return False
    changed = False
    for called in dict.fromkeys(instruction.called):
        left = max(0, walk.limit - walk.tracker.memory)
        changed |= rematerialize_always(state, called, left)
    return changed
