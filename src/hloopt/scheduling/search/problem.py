"""One computation as flat arrays: what an order of it may be, and what makes one good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hloopt.analysis.latency import LatencyModel
from hloopt.ir import Instruction
from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.scheduling.resources.resource import Usage
from hloopt.scheduling.state.state import SchedulingState

TICKS = 1_000_000
"""Ticks per cycle: sums of whole numbers do not depend on the order of adding."""

NO_PAIR = -1

Claim = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]
"""The needs of a node at once, and by how much picking it changes what is left, by resource."""


@dataclass(slots=True)
class Memory:
    """Buffers, numbered anew: who makes them alive and who ends them, seen from the end."""

    size: list[int]
    uses: list[tuple[int, ...]]
    """By node the buffers that are alive from it upwards."""
    begins: list[tuple[int, ...]]
    """By node the buffers that are not alive above it."""
    inside: list[int]
    """By node the most that what it calls may add."""
    alive_at_end: list[int]
    limit: int
    """The most bytes that the computation may add to what is alive below its call."""


@dataclass(slots=True)
class Problem:
    """Nodes are numbered as in the schedule graph."""

    nodes: list[int]
    """The order to start from, which keeps every rule."""
    cost: list[int]
    """Ticks by node."""
    predecessors: list[tuple[int, ...]]
    successors: list[tuple[int, ...]]
    starts: list[int]
    """By pair the node that starts the operation."""
    dones: list[int]
    latency: list[int]
    """By pair the ticks from start to done."""
    exposes: list[bool]
    """By pair whether waiting for it is exposed communication."""
    weight: list[int]
    """By pair what a tick of waiting for it counts."""
    pair_of_start: list[int]
    pair_of_done: list[int]
    claims: list[Claim | None]
    left: list[int]
    """The amount of each resource."""
    claims_keep_order: bool
    """Whether nodes with claims stay in order, as a rule of the target says who may overlap."""
    bottom_up: bool
    """Whether resources are taken from the end of the order to its beginning."""
    memory: Memory
    follower: dict[int, int]
    """The node that has to come right behind each, as they are in one scheduling group."""
    not_later: frozenset[int]
    """Nodes that must not move towards the end."""
    not_earlier: frozenset[int]


def make_problem(
    state: SchedulingState,
    model: LatencyModel,
    exposes: Sequence[bool],
    weights: tuple[int, int],
    limit: int,
    left: Sequence[int],
) -> Problem:
    """The problem of a computation from its present order on; `state` has not begun.

    `model`: whose times count, which may not be those that the scheduler went by.
    `exposes`: by pair, in the order of their dones, whether waiting for it is exposed
    communication. `weights`: what a tick of such waiting counts, and of other. `limit`: bytes above
    what is alive below the call. `left`: by resource, how much of it there is. O(edges + uses of
    buffers).
    """
    graph = state.graph
    count = len(graph.instructions)
    nodes = [graph.number[instruction] for instruction in graph.computation.instructions]
    position = [0] * count
    for place, node in enumerate(nodes):
        position[node] = place
    memory, sides = _memory(state, position, limit)
    before: list[dict[int, None]] = [dict.fromkeys(edges) for edges in graph.predecessors]
    for earlier, later in sides:
        before[later][earlier] = None
    after: list[list[int]] = [[] for _ in range(count)]
    for node, edges in enumerate(before):
        for other in edges:
            after[other].append(node)
    pairs = pairs_of(state, model)
    pair_of_start, pair_of_done = [NO_PAIR] * count, [NO_PAIR] * count
    for number, (start, done, _) in enumerate(pairs):
        pair_of_start[start] = pair_of_done[done] = number
    return Problem(
        nodes=nodes,
        cost=[round(model.node_cost(i) * TICKS) for i in graph.instructions],
        predecessors=[tuple(edges) for edges in before],
        successors=[tuple(edges) for edges in after],
        starts=[start for start, _, _ in pairs],
        dones=[done for _, done, _ in pairs],
        latency=[round(latency * TICKS) for _, _, latency in pairs],
        exposes=list(exposes),
        weight=[weights[0] if exposed else weights[1] for exposed in exposes],
        pair_of_start=pair_of_start,
        pair_of_done=pair_of_done,
        claims=[_claim(state, node) for node in range(count)],
        left=list(left),
        claims_keep_order=state.resources.overlap_check is not None,
        bottom_up=not state.top_down,
        memory=memory,
        follower=_followers(graph.instructions, nodes),
        not_later=frozenset(n for n in range(count) if graph.force_delay[n]),
        not_earlier=frozenset(n for n in range(count) if graph.force_early[n]),
    )


def pairs_of(state: SchedulingState, model: LatencyModel) -> list[tuple[int, int, float]]:
    """Start, done and latency of each operation that is waited for, by number of the done."""
    graph = state.graph
    found: list[tuple[int, int, float]] = []
    for done, is_done in enumerate(graph.is_done):
        if not is_done:
            continue
        instruction = graph.instructions[done]
        start = graph.number[instruction.operands[0]]
        if graph.is_start[start]:
            found.append((start, done, model.latency(instruction.operands[0], instruction)))
    return found


def _claim(state: SchedulingState, node: int) -> Claim | None:
    needs = state.resources.needs[node]
    change = tuple(
        (resource, -1 if usage is Usage.OCCUPY else 1)
        for resource, usage in state.resources.net[node]
        if usage is not Usage.NONE
    )
    return (needs, change) if needs or change else None


def _followers(instructions: Sequence[Instruction], nodes: Sequence[int]) -> dict[int, int]:
    """By node its right neighbour, where both are in one scheduling group."""
    groups = [group_of(instructions[node]) for node in nodes]
    return {
        node: after
        for (node, group), (after, next_group) in pairwise(zip(nodes, groups, strict=True))
        if group is not None and group == next_group
    }


def _memory(
    state: SchedulingState, position: Sequence[int], limit: int
) -> tuple[Memory, list[tuple[int, int]]]:
    """The buffers, and which nodes must keep their order so that these stay what they are.

    A buffer that is used above where it begins is alive from there to the top, as another one:
    so readers stay on their side of the node where a buffer begins.
    """
    life = state.memory.life
    allocated, released = state.memory.allocated, state.memory.released
    if state.top_down:
        allocated = [life.allocated(instruction) for instruction in state.graph.instructions]
        released = [life.released(instruction) for instruction in state.graph.instructions]
    begin: dict[int, int] = {}
    for node, buffers in enumerate(released):
        for buffer in buffers:
            begin[buffer] = node
    sides: list[tuple[int, int]] = []
    size: list[int] = []
    number: dict[tuple[int, bool], int] = {}

    def numbered(buffer: int, *, is_above: bool) -> int:
        found = number.get((buffer, is_above))
        if found is None:
            found = number[buffer, is_above] = len(size)
            size.append(life.size[buffer])
        return found

    uses: list[tuple[int, ...]] = []
    for node, buffers in enumerate(allocated):
        own: list[int] = []
        for buffer in dict.fromkeys(buffers):
            first = begin.get(buffer, node)
            is_above = position[node] < position[first]
            if first != node:
                sides.append((node, first) if is_above else (first, node))
            own.append(numbered(buffer, is_above=is_above))
        uses.append(tuple(own))
    begins = [tuple(numbered(buffer, is_above=False) for buffer in buffers) for buffers in released]
    alive = [
        numbered(buffer, is_above=False)
        for buffer in life.states[state.graph.computation].live_below
    ]
    return Memory(size, uses, begins, list(state.memory.inside), alive, limit), sides
