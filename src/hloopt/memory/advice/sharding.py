"""Buffers at the peak that every device keeps alike."""

from __future__ import annotations

from hloopt.analysis.replication import ReplicationAnalysis
from hloopt.ir.devices.device_counts import device_counts
from hloopt.memory.advice.gaps import Places
from hloopt.memory.advice.idle import suggested
from hloopt.memory.advice.model import Sharding
from hloopt.memory.analysis import MemoryAnalysis


def find_sharding(analysis: MemoryAnalysis, places: Places, position: int) -> list[Sharding]:
    """The replicated buffers in use at a position, the largest first.

    Compared are partitions, or replicas where there is but one partition. O(instructions).
    """
    module = analysis.flow.module
    grid = device_counts(module)
    devices = grid.partitions if grid.partitions > 1 else grid.replicas
    if devices < 2:
        return []
    replication = ReplicationAnalysis(
        module, cross_partition_spmd=grid.partitions > 1, device_counts=grid
    )
    found = []
    for place in places.all:
        value = places.kept(place, position)
        if value is None:
            continue
        definer = analysis.flow.definer[value]
        if replication.is_replicated(definer, analysis.flow.index(value)):
            saved = place.size - -(-place.size // devices)
            found.append(
                Sharding(suggested(analysis, value, place.kind, place.size), saved, devices)
            )
    return sorted(found, key=lambda sharding: -sharding.saved)
