"""The rules that say which of the ready nodes is scheduled next, as functions.

Rules are written for scheduling bottom up, where what is picked first comes last in the program.
A rule narrows a list of candidates to those it prefers; all of them where it has no opinion. Most
rules order candidates by a key, so that narrowing a list gives what comparing one after the other
would. Those that do not say for which candidates this fails.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hloopt.ir import Opcode
from hloopt.scheduling.resources.tracker import RESOURCE_OF
from hloopt.scheduling.rules.rule import Nodes
from hloopt.scheduling.state.state import SchedulingState

PERMUTE = RESOURCE_OF[Opcode.COLLECTIVE_PERMUTE]


# -- ways to narrow -------------------------------------------------------------------------------


def _with(nodes: Nodes, flags: Sequence[bool]) -> Nodes:
    return [node for node in nodes if flags[node]] or nodes


def _without(nodes: Nodes, flags: Sequence[bool]) -> Nodes:
    return [node for node in nodes if not flags[node]] or nodes


def _smallest(nodes: Nodes, keys: Sequence[float]) -> Nodes:
    least = min(keys)
    return [nodes[place] for place, key in enumerate(keys) if key == least]


def _largest(nodes: Nodes, keys: Sequence[float]) -> Nodes:
    most = max(keys)
    return [nodes[place] for place, key in enumerate(keys) if key == most]


# -- what programs ask for ------------------------------------------------------------------------


def force_early(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer what is forced to the end of the program."""
    flags = state.graph.force_early
    return _without(nodes, flags) if state.top_down else _with(nodes, flags)


def force_delay(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Avoid what is forced to the beginning of the program."""
    flags = state.graph.force_delay
    return _with(nodes, flags) if state.top_down else _without(nodes, flags)


def force_delay_priority(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer the delayed node whose hint asks for less delay."""
    keys = [state.graph.delay_priority[node] for node in nodes]
    return _largest(nodes, keys) if state.top_down else _smallest(nodes, keys)


def preference(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer the larger of two preferences."""
    preferences = state.graph.preference
    if any(node not in preferences for node in nodes):
        return nodes
    return _largest(nodes, [preferences[node] for node in nodes])


def prefers_some(state: SchedulingState, nodes: Nodes) -> bool:
    """Whether some have a preference and some have none."""
    known = sum(node in state.graph.preference for node in nodes)
    return 0 < known < len(nodes)


def force_delay_after_target(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Avoid what a flexible group let go: it is to come early in the program."""
    flags = state.graph.delay_after_target
    return _with(nodes, flags) if state.top_down else _without(nodes, flags)


# -- memory ---------------------------------------------------------------------------------------


def no_increase_over_limit(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Above the memory limit prefer what frees most, and what adds none to what adds some."""
    if not state.memory.is_over_limit:
        return nodes
    outlook = state.memory.outlook
    return _smallest(nodes, [min(outlook(node)[0], 1) for node in nodes])


def depth_over_limit(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Above the memory limit prefer what is deepest in the graph."""
    if not state.memory.is_over_limit:
        return nodes
    return _largest(nodes, [state.graph.graph_depth[node] for node in nodes])


def decrease_memory_over_limit(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Above the memory limit prefer the better change of usage."""
    if not state.memory.is_over_limit:
        return nodes
    outlook = state.memory.outlook
    return _smallest(nodes, [outlook(node)[0] for node in nodes])


def memory_peak_over_limit(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Near the memory limit prefer what stays below it throughout."""
    if not state.memory.is_near_limit:
        return nodes
    room = state.memory.limit - state.memory.usage
    outlook = state.memory.outlook
    return [node for node in nodes if outlook(node)[1] <= room] or nodes


def decrease_memory(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Near the memory limit prefer what frees memory."""
    if not state.memory.is_near_limit:
        return nodes
    return [node for node in nodes if state.memory.outlook(node)[0] < 0] or nodes


# -- starts and dones -----------------------------------------------------------------------------


def delay_async_start(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Avoid starts; top down avoid dones."""
    return _without(nodes, state.graph.is_done if state.top_down else state.graph.is_start)


def schedule_done(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer what occupies a resource, so that other work can hide its latency."""
    if state.top_down:
        flags = state.graph.is_start
        return [n for n in nodes if flags[n] and state.facts.occupies_any[n]] or nodes
    chosen = _with(nodes, state.facts.occupies_any)
    if chosen is nodes or not state.facts.host_send_dones:
        return chosen
    return [node for node in chosen if not _should_wait(state, node)] or nodes


def _should_wait(state: SchedulingState, node: int) -> bool:
    """Whether a send-done to the host would be reached while its send has to wait for others."""
    if node not in state.facts.host_send_dones:
        return False
    send, latency = state.facts.host_send_dones[node]
    finish = 0.0
    graph = state.graph
    for after, edge in zip(graph.successors[send], graph.successor_latency[send], strict=True):
        if after != node:
            time = state.clock.ready_time[after]
            if time < 0:
                return False
            finish = max(finish, time + edge)
    return finish - state.clock.now > latency


def done_fact(state: SchedulingState, node: int) -> Hashable:
    """The part of a node that `schedule_done` reads."""
    if node in state.facts.host_send_dones:
        return node
    return state.facts.occupies_any[node], state.top_down and state.graph.is_start[node]


def delay_done_of_delayed_start(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Avoid, among dones of one kind, those whose start is delayed."""
    instructions, is_done = state.graph.instructions, state.graph.is_done
    kinds = {instructions[node].opcode if is_done[node] else None for node in nodes}
    if len(kinds) > 1 or None in kinds:
        return nodes
    flags = state.facts.has_delayed_start
    return _with(nodes, flags) if state.top_down else _without(nodes, flags)


def has_delayed_starts(state: SchedulingState, nodes: Nodes) -> bool:
    """Whether the start of any is delayed."""
    return any(state.facts.has_delayed_start[node] for node in nodes)


def delayed_done_fact(state: SchedulingState, node: int) -> Hashable:
    """The part of a node that `delay_done_of_delayed_start` reads."""
    is_done = state.graph.is_done[node]
    return is_done and (state.graph.instructions[node].opcode, state.facts.has_delayed_start[node])


def release_nonextendable(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer what has longest held a resource that has to be given back in time."""
    now, ready, flags = state.clock.now, state.clock.ready_time, state.facts.releases_nonextendable
    return _largest(nodes, [max(now - ready[n], 0.0) if flags[n] else 0.0 for n in nodes])


def schedule_start(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer a collective-permute whose latency is over; of several the one that was over last."""
    now, ready, releases = state.clock.now, state.clock.ready_time, state.graph.releases
    due = [node for node in nodes if ready[node] <= now and PERMUTE in releases[node]]
    return _largest(due, [ready[node] - now for node in due]) if due else nodes


def start_at_zero_depth(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Avoid a start that no other operation is before, unless others wait for its resource."""
    depth, releases = state.direction.async_depth, state.facts.releases_any
    if not state.resources.constrained:
        return [n for n in nodes if depth[n] or not releases[n]] or nodes
    return [
        n for n in nodes if depth[n] or not releases[n] or state.resources.is_constrained(n)
    ] or nodes


def less_stall(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer what can run soonest."""
    now, ready = state.clock.now, state.clock.ready_time
    chosen = [node for node in nodes if ready[node] <= now]
    return chosen or _smallest(nodes, [ready[node] for node in nodes])


def less_serial_conflict(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer what has fewest operations in flight on its serial resources."""
    return _smallest(nodes, [state.resources.serial_conflicts(node) for node in nodes])


def free_backedup_resource(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer what gives back a resource that others wait for."""
    if not state.resources.constrained:
        return nodes
    releases = state.facts.releases_any
    return [n for n in nodes if releases[n] and state.resources.is_constrained(n)] or nodes


def async_depth(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer what has the longest chain of asynchronous operations still before it."""
    depth = state.direction.async_depth
    return _largest(nodes, [depth[node] for node in nodes])


def avoid_waste(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer what takes just as long as until the next node becomes ready, and is not a start."""
    if not state.clock.becoming_ready:
        return nodes
    gap = state.clock.becoming_ready[0] - state.clock.now
    cost = state.graph.cost
    closest = _smallest(nodes, [abs(gap - cost[node]) for node in nodes])
    releases = state.facts.releases_any
    return nodes if True in [releases[node] for node in closest] else closest


def has_some_releases(state: SchedulingState, nodes: Nodes) -> bool:
    """Whether some give back a resource and some do not, while others become ready."""
    if not state.clock.becoming_ready:
        return False
    releases = state.facts.releases_any
    return len({releases[node] for node in nodes}) > 1


def unlock_done(state: SchedulingState, nodes: Nodes) -> Nodes:
    """The instructions that a done comes right before."""
    return _with(nodes, state.facts.unlocks)


def not_valuable_for_selective_overlap(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Keep valuable work while a selective resource is about to be used."""
    selective = state.selective
    if selective is None or selective.releasers or len(nodes) != 2:
        return nodes
    keep = [node for node in nodes if selective.should_be_kept(node)]
    return [node for node in nodes if node not in keep] if len(keep) == 1 else nodes


def may_be_kept(state: SchedulingState, nodes: Nodes) -> bool:
    """Whether `not_valuable_for_selective_overlap` may have an opinion on more than two."""
    selective = state.selective
    return selective is not None and not selective.releasers and len(nodes) > 2


def creates_more_ready_nodes(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer what makes more nodes ready: those that wait for nothing else."""
    created = state.ready.creates_ready
    return _largest(nodes, [created[node] for node in nodes])


def original_order(state: SchedulingState, nodes: Nodes) -> Nodes:
    """Prefer what came last in the incoming schedule."""
    return [min(nodes) if state.top_down else max(nodes)]
