"""The collectives of XLA:GPU that may run at the same time where each has a stream of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from hloopt.analysis.async_operations import wrapped
from hloopt.analysis.gpu_async import is_collectives_group, is_custom_collective
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.devices.collective_mode import named_groups
from hloopt.ir.opcode import COLLECTIVES
from hloopt.scheduling.resources.in_use import ResourcesInUse
from hloopt.scheduling.resources.resource import Needs

DeviceGroups = tuple[tuple[int, ...], ...]
"""The devices that meet; no groups at all stand for one group of every device."""


class StreamOverlap:
    """Whether a node may be scheduled: collectives in flight may have one device in common.

    Synchronous collectives, and calls that are annotated as collectives, may meet any other. What
    calls several computations needs of a resource what the first of them does that uses it.
    """

    def __init__(
        self,
        collectives: int,
        is_start: Callable[[Instruction], bool],
        is_done: Callable[[Instruction], bool],
        needs_inside: Callable[[Computation], Mapping[int, int]],
    ) -> None:
        self.collectives = collectives
        """The resource of collectives."""
        self._needs_inside = needs_inside
        """The part of each resource that a computation has in use at once, at most."""
        self._is_start = is_start
        """Whether an instruction is the start of something asynchronous."""
        self._is_done = is_done
        """Whether an instruction is the done of an asynchronous collective."""
        self._known: dict[tuple[Instruction, Instruction], bool] = {}
        """Whether two starts have to be apart."""

    def __call__(self, instruction: Instruction, needs: Needs, in_use: ResourcesInUse) -> bool:
        """O(operations in flight), and O(devices in groups) for each two starts once."""
        for resource, count in self._counted(instruction, needs):
            if in_use.in_flight[resource] and count > in_use.remaining[resource]:
                return False
        if not self._has_to_be_apart(instruction):
            return True
        start = instruction.operands[0]
        others = filter(self._names_devices, in_use.in_flight[self.collectives])
        return not any(self._have_to_be_apart(start, other) for other in others)

    def fact(self, instruction: Instruction) -> Hashable:
        """The groups of devices that meet, which others must not. O(size of the groups)."""
        if not self._has_to_be_apart(instruction):
            return self._counted(instruction, ()) or None
        return groups_of_start(instruction.operands[0])

    def _counted(self, instruction: Instruction, needs: Needs) -> Needs:
        """The needs that count here: of several callees' those of the first that has any."""
        if len(instruction.called) < 2:
            return needs
        found: dict[int, int] = {}
        for computation in instruction.called:
            for resource, count in self._needs_inside(computation).items():
                found.setdefault(resource, count)
        return tuple(found.items())

    def _has_to_be_apart(self, instruction: Instruction) -> bool:
        return self._is_done(instruction) and not is_custom_collective(instruction)

    def _names_devices(self, occupier: Instruction) -> bool:
        """Whether what has the resource is a start whose devices are known by its groups."""
        return self._is_start(occupier) and not is_custom_collective(occupier)

    def _have_to_be_apart(self, a: Instruction, b: Instruction) -> bool:
        """Whether what two starts begin may not run at the same time."""
        if (a, b) not in self._known:
            self._known[a, b] = share_two(groups_of_start(a), groups_of_start(b))
        return self._known[a, b]


def share_two(a: DeviceGroups, b: DeviceGroups) -> bool:
    """Whether two devices that meet in `a` meet in `b` too; all may where there are no groups.

    O(devices in groups).
    """
    if not a or not b:
        return True
    groups_of: dict[int, list[int]] = {}
    for number, group in enumerate(a):
        for device in set(group):
            groups_of.setdefault(device, []).append(number)
    for group in b:
        met: set[int] = set()
        for device in set(group):
            for number in groups_of.get(device, ()):
                if number in met:
                    return True
                met.add(number)
    return False


def groups_of_start(start: Instruction) -> DeviceGroups:
    """The groups of the collective that a start begins; empty where all devices may meet.

    In the numbers that the collective names, which are not resolved to devices.
    """
    if start.opcode is not Opcode.ASYNC_START:
        return named_groups(start)
    if not is_collectives_group(start):
        return named_groups(wrapped(start))
    found: DeviceGroups = ()
    for instruction in start.called[0].instructions:
        opcode = instruction.opcode
        if opcode is Opcode.ASYNC_START:
            groups = groups_of_start(instruction)
        elif opcode in COLLECTIVES and not opcode.endswith("-done"):
            groups = named_groups(instruction)
        else:
            continue
        if not groups:
            return ()
        found += groups
    return found
