"""Facts about the nodes of a schedule graph that scheduling does not change, as lists by node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress

from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.resources.resource import Hazard, Needs, Uses
from hloopt.scheduling.resources.tracker import SEND_HOST, ResourceTracker


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Facts that rules ask for."""

    occupies_any: list[bool]
    releases_any: list[bool]
    releases_nonextendable: list[bool]
    unlocks: list[bool]
    has_delayed_start: list[bool]
    host_send_dones: dict[int, tuple[int, float]]

    @classmethod
    def of(cls, graph: ScheduleGraph, tracker: ResourceTracker) -> NodeFacts:
        return cls(
            occupies_any=[bool(occupied) for occupied in graph.occupies],
            releases_any=[bool(released) for released in graph.releases],
            releases_nonextendable=releases_hazard(graph, tracker, Hazard.NONEXTENDABLE),
            unlocks=unlocks(graph, top_down=tracker.config.top_down_scheduling),
            has_delayed_start=has_delayed_start(graph),
            host_send_dones=host_send_dones(graph),
        )


def net_uses(graph: ScheduleGraph, tracker: ResourceTracker) -> list[Uses]:
    """The uses of resources that last when each node is scheduled."""
    return [
        tracker.net_uses(instruction) if uses else ()
        for instruction, uses in zip(graph.instructions, graph.uses, strict=True)
    ]


def limited_needs(graph: ScheduleGraph, tracker: ResourceTracker) -> list[Needs]:
    """The resources with a limit that a node needs, each with the number of units."""
    return [
        _with_limit(tracker, tracker.needs(instruction)) if uses or instruction.called else ()
        for instruction, uses in zip(graph.instructions, graph.uses, strict=True)
    ]


def _with_limit(tracker: ResourceTracker, needs: Mapping[int, int]) -> Needs:
    if not needs:
        return ()
    limits = tracker.resources
    return tuple(
        (resource, count)
        for resource, count in needs.items()
        if count and limits[resource].limit is not None
    )


def releases_hazard(graph: ScheduleGraph, tracker: ResourceTracker, hazard: Hazard) -> list[bool]:
    """Whether a node releases a resource with a hazard."""
    chosen = {n for n, r in enumerate(tracker.resources) if r.hazard is hazard}
    return [not chosen.isdisjoint(released) for released in graph.releases]


def unlocks(graph: ScheduleGraph, *, top_down: bool) -> list[bool]:
    """Whether a node has a done among its operands; top down, a start among its users."""
    if top_down:
        starts = set(compress(graph.instructions, graph.is_start))
        return [not starts.isdisjoint(instruction.users) for instruction in graph.instructions]
    dones = set(compress(graph.instructions, graph.is_done))
    return [not dones.isdisjoint(instruction.operands) for instruction in graph.instructions]


def has_delayed_start(graph: ScheduleGraph) -> list[bool]:
    """Whether a node is the done of a start that is to be delayed."""
    return [_has_delayed_start(graph, node) for node in range(len(graph.instructions))]


def _has_delayed_start(graph: ScheduleGraph, node: int) -> bool:
    if not graph.is_done[node]:
        return False
    start = graph.number[graph.instructions[node].operands[0]]
    return graph.is_start[start] and graph.force_delay[start]


def host_send_dones(graph: ScheduleGraph) -> dict[int, tuple[int, float]]:
    """The send-dones of host transfers, each with its send and the latency between them."""
    return {
        node: _send_of(graph, node)
        for node, uses in enumerate(graph.uses)
        if uses
        and uses[0][0] == SEND_HOST
        and graph.is_done[node]
        and graph.instructions[node].opcode == "send-done"
    }


def _send_of(graph: ScheduleGraph, node: int) -> tuple[int, float]:
    send = graph.number[graph.instructions[node].operands[0]]
    edges = zip(graph.predecessors[node], graph.predecessor_latency[node], strict=True)
    return send, max((latency for before, latency in edges if before == send), default=0.0)
