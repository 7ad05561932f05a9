"""The agreement of devices on results of collectives."""

from __future__ import annotations

from hloopt.analysis.replication.agreement import ALL, NONE, Agreement, Axis, Groups, Lattice
from hloopt.ir.attributes.values import parse_replica_groups
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode
from hloopt.ir.instruction import Instruction


class Collectives:
    """The agreement on results of all-reduce and all-gather, from that on their operands.

    Answers are kept by the attributes they depend on, as real modules repeat few of them.
    """

    def __init__(
        self, axis: Axis, counts: tuple[int, int], lattice: Lattice, *, partial: bool
    ) -> None:
        self._axis = axis
        self._partitions = counts[1]
        self._lattice = lattice
        self._partial = partial
        is_replicas = axis is Axis.REPLICAS
        self._count, self._positions = counts if is_replicas else counts[::-1]
        self._answers: dict[tuple[CollectiveMode, str], tuple[bool, Agreement]] = {}

    def result(self, instruction: Instruction, operands: Agreement) -> Agreement:
        """The agreement on the result. O(1), but for the first with such groups O(devices)."""
        mode = collective_mode(instruction)
        if mode is CollectiveMode.CROSS_REPLICA and self._axis is Axis.PARTITIONS:
            return self._lattice.at_all_positions(operands)
        text = instruction.attributes.get("replica_groups", "{}")
        answer = self._answers.get((mode, text))
        if answer is None:
            answer = self._answers[mode, text] = self._answer(mode, text)
        keeps_all, of_groups = answer
        return ALL if keeps_all and operands is ALL else of_groups

    def _answer(self, mode: CollectiveMode, text: str) -> tuple[bool, Agreement]:
        """Whether a value that all devices have stays one, and the agreement of any other."""
        groups = parse_replica_groups(text)
        if mode is CollectiveMode.FLATTENED_ID and groups.group_count:
            if groups.named_count > MOST_DEVICES:
                return False, NONE
            return self._flattened(groups.lists())
        if groups.group_count < 2 or self._axis is Axis.PARTITIONS:
            return True, ALL
        if groups.named_count > MOST_DEVICES:
            return not groups.explicit, NONE
        lists = groups.lists()
        of_groups = self._lattice.partial([lists]) if self._partial else NONE
        return len(set(map(len, lists))) == 1, of_groups

    def _flattened(self, groups: Groups) -> tuple[bool, Agreement]:
        """For groups of devices: replica times partitions plus partition."""
        contributions: dict[int, set[tuple[int, ...]]] = {}
        sets: dict[int, list[list[int]]] = {}
        for group in groups:
            members = [self._place(number) for number in group]
            positions = tuple(position for position, _ in members)
            for position in dict.fromkeys(positions):
                contributions.setdefault(position, set()).add(positions)
                sets.setdefault(position, []).append([d for p, d in members if p == position])
        keeps_all = all(len(found) == 1 for found in contributions.values())
        if len(sets) < self._positions:
            return keeps_all, NONE
        of_groups = self._lattice.partial(sets[position] for position in sorted(sets))
        return keeps_all, of_groups if self._partial or of_groups is ALL else NONE

    def _place(self, number: int) -> tuple[int, int]:
        """The position of a device on the other axis, and its number on the compared one."""
        replica, partition = divmod(number, self._partitions)
        return (partition, replica) if self._axis is Axis.REPLICAS else (replica, partition)
