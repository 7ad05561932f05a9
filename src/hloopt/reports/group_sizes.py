"""How many devices take part in operations."""

from __future__ import annotations

from hloopt.analysis.async_operations import wrapped
from hloopt.ir import Instruction, Opcode
from hloopt.ir.collective_mode import CollectiveMode, collective_mode
from hloopt.ir.opcode import COLLECTIVES
from hloopt.passes.latency_hiding_scheduler.gpu_streams import groups_of_start
from hloopt.simulation import Operation


def group_size(operation: Operation) -> int | None:
    """How many devices meet in a collective; None for what is none."""
    start = operation.start
    collective = wrapped(start) if start.opcode is Opcode.ASYNC_START else start
    if collective.opcode not in COLLECTIVES:
        return None
    groups = groups_of_start(start)
    if "source_target_pairs" in collective.attributes:
        return len({device for pair in groups for device in pair})
    return max(map(len, groups)) if groups else _all_devices(collective)


def _all_devices(collective: Instruction) -> int:
    module = collective.parent.module
    mode = collective_mode(collective)
    if mode is CollectiveMode.CROSS_REPLICA:
        return module.replica_count
    if mode is CollectiveMode.CROSS_PARTITION:
        return module.num_partitions
    return module.replica_count * module.num_partitions
