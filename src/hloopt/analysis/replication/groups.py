"""Whether the devices that run a collective together have the same value."""

from __future__ import annotations

from hloopt.analysis.device_values import DeviceValues
from hloopt.analysis.replication.analysis import ReplicationAnalysis
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES
from hloopt.ir.devices.collective_devices import device_groups
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode, replica_groups
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode


class GroupReplication:
    """Tells whether values agree within the groups of collectives, for a module at its first query.

    Along an axis with one position (one replica, say) every value counts as replicated. Integer
    scalars that depend on device ids and constants alone are compared by value. For all other
    values the replication analysis, with `presume_functions`, runs once for each axis, at the
    first query about it.
    """

    def __init__(self, module: Module, grid: Grid, *, presume_functions: bool = False) -> None:
        self._module = module
        self._counts = grid
        self._presume_functions = presume_functions
        self._own = DeviceValues(grid)
        self._analyses: dict[bool, ReplicationAnalysis] = {}

    def holds(self, value: Instruction, collective: Instruction) -> bool:
        """Whether `value` is surely the same on all devices of each group of `collective`.

        Groups that mix replicas and partitions count as one group of all devices, as in XLA.
        False for groups of more than MOST_DEVICES devices.
        """
        named = replica_groups(collective)
        if named.named_count > MOST_DEVICES:
            return False
        scalar = scalar_of_broadcast(value)
        own = None if scalar is None else self._own.of(scalar)
        if own is not None:
            return all(
                max(group) < len(own) and len({own[device] for device in group}) == 1
                for group in device_groups(collective, self._counts)
            )
        groups = named.lists()
        replicas, partitions = self._counts
        match collective_mode(collective):
            case CollectiveMode.CROSS_REPLICA:
                return self._same_on_replicas(value, groups)
            case CollectiveMode.CROSS_PARTITION:
                return self._same_on_partitions(value, groups)
            case CollectiveMode.CROSS_REPLICA_AND_PARTITION:
                return self._same_on_replicas(value, groups) and self._same_on_partitions(value)
            case CollectiveMode.FLATTENED_ID if replicas == 1:
                return self._same_on_partitions(value, groups)
            case CollectiveMode.FLATTENED_ID if partitions == 1:
                return self._same_on_replicas(value, groups)
            case CollectiveMode.FLATTENED_ID:
                return self._same_on_replicas(value) and self._same_on_partitions(value)

    def _same_on_replicas(
        self, value: Instruction, groups: tuple[tuple[int, ...], ...] = ()
    ) -> bool:
        if self._counts[0] == 1:
            return True
        return self._along(partitions=False).is_replicated(value, groups=groups)

    def _same_on_partitions(
        self, value: Instruction, groups: tuple[tuple[int, ...], ...] = ()
    ) -> bool:
        if self._counts[1] == 1:
            return True
        return self._along(partitions=True).is_replicated(value, groups=groups)

    def _along(self, *, partitions: bool) -> ReplicationAnalysis:
        analysis = self._analyses.get(partitions)
        if analysis is None:
            analysis = self._analyses[partitions] = ReplicationAnalysis(
                self._module,
                cross_partition_spmd=partitions,
                partial_replication=True,
                device_counts=self._counts,
                presume_functions=self._presume_functions,
            )
        return analysis


def scalar_of_broadcast(value: Instruction) -> Instruction | None:
    """The scalar that all elements of a value equal: itself, or the operand of its broadcast."""
    if value.shape.is_scalar:
        return value
    is_spread = value.opcode is Opcode.BROADCAST and value.operands[0].shape.is_scalar
    return value.operands[0] if is_spread else None
