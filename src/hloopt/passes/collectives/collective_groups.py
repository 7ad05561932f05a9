"""Device groups of collectives, those in called computations included, and conflicts of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hloopt.analysis.async_operations import OWN_STARTS, SYNC_COLLECTIVES, is_host_transfer
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_devices import device_groups, join
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import dependencies, depth_first

_COLLECTIVES = {*SYNC_COLLECTIVES, *OWN_STARTS, Opcode.SEND, Opcode.RECV} - {Opcode.COPY_START}
"""Opcodes that begin to communicate with other devices; dones are left out."""
_Groups = tuple[tuple[int, ...], ...]


class CollectiveGroups:
    """Finds the device groups of collectives, directly or in called computations.

    Groups of called computations are cached: a pass may replace collectives in them, but by others
    with the same groups.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._within: dict[Computation, dict[tuple[int, ...], None]] = {}

    def groups(self, instruction: Instruction) -> _Groups:
        """The device groups of a collective, or of all collectives that a caller runs.

        O(devices), and once O(instructions) of each called computation.
        """
        if instruction.opcode in _COLLECTIVES and not is_host_transfer(instruction):
            return tuple(device_groups(instruction, self.grid))
        return tuple(
            dict.fromkeys(
                group for callee in instruction.called for group in self._groups_within(callee)
            )
        )

    def _groups_within(self, computation: Computation) -> Iterable[tuple[int, ...]]:
        if computation not in self._within:
            for callee in depth_first([computation], _callees):
                if callee not in self._within:
                    found = {
                        group: None
                        for instruction in callee.instructions
                        for group in self.groups(instruction)
                    }
                    self._within[callee] = found
        return self._within[computation]

    def in_conflict(self, body: Computation, split: Sequence[Instruction]) -> list[Instruction]:
        """The collectives of a body, and callers of some, that must not overlap those in `split`.

        These have a group that shares two devices with a group of `split`, or of another one in
        conflict. O(devices) for each two distinct sets of groups, beside O(instructions).
        """
        by_groups: dict[_Groups, list[Instruction]] = {}
        for instruction in body.instructions:
            if groups := self.groups(instruction):
                by_groups.setdefault(groups, []).append(instruction)
        clusters = _Clusters()
        for permute in split:
            clusters.add(self.groups(permute))
        in_conflict: list[Instruction] = []
        left = dict(by_groups)
        is_growing = True
        while is_growing:
            is_growing = False
            for groups in [groups for groups in left if clusters.share_two(groups)]:
                clusters.add(groups)
                in_conflict += left.pop(groups)
                is_growing = True
        being_split = set(split)
        return [collective for collective in in_conflict if collective not in being_split]


def _callees(computation: Computation) -> list[Computation]:
    return [callee for instruction in computation.instructions for callee in instruction.called]


class _Clusters:
    """Disjoint sets of devices: those in one group of a collective, transitively."""

    def __init__(self) -> None:
        self._cluster_of: dict[int, list[int]] = {}

    def add(self, groups: _Groups) -> None:
        """Join the devices of each group. O(devices · log(devices)) over all calls."""
        for group in groups:
            for device in group[1:]:
                join(self._cluster_of, group[0], device)

    def share_two(self, groups: _Groups) -> bool:
        """Whether two devices of one group are in one cluster. O(devices)."""
        return any(
            count > 1
            for group in groups
            for count in Counter(
                id(self._cluster_of[device]) for device in group if device in self._cluster_of
            ).values()
        )


Transfer = tuple[Instruction, Instruction, Instruction]
"""The recv, send and send-done of a permute."""


def order_against_transfers(
    collectives: Iterable[Instruction], transfers: Sequence[Transfer]
) -> None:
    """Order collectives against transfers, which are chained already, by control dependencies.

    A collective that a send depends on runs before the recv of the first such transfer and after
    the transfer before that; all others run after the last transfer. O(edges).
    """
    first_that_needs: dict[Instruction, int] = {}
    for number, (_, send, _) in enumerate(transfers):
        for needed in depth_first([send], lambda i: _new(i, first_that_needs)):
            first_that_needs.setdefault(needed, number)
    for collective in collectives:
        number = first_that_needs.get(collective, len(transfers))
        if number:
            collective.add_control_predecessor(transfers[number - 1][2])
        if number < len(transfers):
            end = next((u for u in collective.users if u.opcode.endswith("-done")), collective)
            if first_that_needs.get(end) != number:
                end = collective
            transfers[number][0].add_control_predecessor(end)


def _new(instruction: Instruction, known: dict[Instruction, int]) -> list[Instruction]:
    return [operand for operand in dependencies(instruction) if operand not in known]
