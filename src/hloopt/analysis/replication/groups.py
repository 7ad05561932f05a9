"""Whether the devices that run a collective together have the same value."""

from __future__ import annotations

from hloopt.analysis.replication.analysis import ReplicationAnalysis
from hloopt.ir.collective_mode import CollectiveMode, collective_mode, replica_groups
from hloopt.ir.grid import MOST_DEVICES
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module


class GroupReplication:
    """Answers for all values and collectives of a module, as it is when it is first asked.

    Along an axis with one position (one replica, say, which is also what a header stands for
    that names no number) every value counts as replicated. `device_counts` are replicas and
    partitions where the header is not to be believed. The replication analysis runs once for each
    other axis, at the first question about it.
    """

    def __init__(self, module: Module, device_counts: tuple[int, int] | None = None) -> None:
        self._module = module
        self._counts = device_counts or (module.replica_count, module.num_partitions)
        self._analyses: dict[bool, ReplicationAnalysis] = {}

    def holds(self, value: Instruction, collective: Instruction) -> bool:
        """Whether `value` is surely the same on all devices of each group of `collective`.

        Groups that mix replicas and partitions count as one group of all devices, as in XLA.
        False for groups of more than MOST_DEVICES devices.
        """
        named = replica_groups(collective)
        if named.named_count > MOST_DEVICES:
            return False
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
            )
        return analysis
