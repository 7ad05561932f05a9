"""Which collectives of XLA:GPU may run at the same time where each has a stream of its own."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import combinations
from typing import TYPE_CHECKING

from hloopt.analysis.async_operations import wrapped
from hloopt.analysis.gpu_async import STREAM_ANNOTATION, is_collectives_group
from hloopt.ir import Instruction, Opcode
from hloopt.ir.collective_mode import named_groups
from hloopt.ir.frontend_attributes import frontend_attribute
from hloopt.ir.opcode import COLLECTIVES

if TYPE_CHECKING:
    from hloopt.passes.latency_hiding_scheduler.state import SchedulingState

DeviceGroups = tuple[tuple[int, ...], ...]
"""The devices that meet; no groups at all stand for one group of every device."""


class StreamOverlap:
    """Whether a node may be scheduled: collectives in flight may have one device in common."""

    def __init__(self, collectives: int) -> None:
        self.collectives = collectives
        """The resource of collectives."""
        self._shared_pairs: dict[Instruction, set[tuple[int, int]] | None] = {}

    def __call__(self, state: SchedulingState, node: int) -> bool:
        """O(operations in flight · pairs of devices in the node's groups)."""
        remaining = state.remaining
        for resource, count in state.needs[node]:
            if state.in_flight[resource] and count > remaining[resource]:
                return False
        if not self._has_to_be_apart(state, node):
            return True
        instructions = state.graph.instructions
        pairs = self._pairs(instructions[node].operands[0])
        for other in state.in_flight[self.collectives]:
            theirs = self._pairs(instructions[other])
            if pairs is None or theirs is None or not pairs.isdisjoint(theirs):
                return False
        return True

    def fact(self, state: SchedulingState, node: int) -> Hashable:
        """The groups of devices that meet, which others must not. O(size of the groups)."""
        if not self._has_to_be_apart(state, node):
            return None
        return device_groups(state.graph.instructions[node].operands[0])

    def _has_to_be_apart(self, state: SchedulingState, node: int) -> bool:
        uses = state.graph.uses[node]
        return (
            bool(uses)
            and uses[0][0] == self.collectives
            and state.graph.is_done[node]
            and frontend_attribute(state.graph.instructions[node], STREAM_ANNOTATION) is None
        )

    def _pairs(self, start: Instruction) -> set[tuple[int, int]] | None:
        """The pairs of devices that meet in a group; None where all devices may."""
        if start not in self._shared_pairs:
            groups = device_groups(start)
            self._shared_pairs[start] = (
                {pair for group in groups for pair in combinations(sorted(set(group)), 2)}
                if groups
                else None
            )
        return self._shared_pairs[start]


def device_groups(start: Instruction) -> DeviceGroups:
    """The groups of the collective that a start begins; empty where all devices may meet."""
    if start.opcode is not Opcode.ASYNC_START:
        return named_groups(start)
    if not is_collectives_group(start):
        return named_groups(wrapped(start))
    found: DeviceGroups = ()
    for instruction in start.called[0].instructions:
        opcode = instruction.opcode
        if opcode is Opcode.ASYNC_START:
            groups = device_groups(instruction)
        elif opcode in COLLECTIVES and not opcode.endswith("-done"):
            groups = named_groups(instruction)
        else:
            continue
        if not groups:
            return ()
        found += groups
    return found
