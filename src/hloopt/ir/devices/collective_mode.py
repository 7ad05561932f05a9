"""The mode of a collective: its numbers are replicas, partitions or flattened ids."""

from __future__ import annotations

from collections.abc import Hashable
from enum import StrEnum

from hloopt.ir.attributes.values import ReplicaGroups, parse_int_lists, parse_replica_groups
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES, Groups
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import PERMUTING, Opcode

_WITHOUT_GLOBAL_IDS = frozenset(
    (
        *(*PERMUTING, Opcode.COLLECTIVE_BROADCAST),
        *(Opcode.ALL_TO_ALL, Opcode.RAGGED_ALL_TO_ALL),
    )
)
"""Collectives whose numbers are those of partitions as soon as they have a channel."""


class CollectiveMode(StrEnum):
    """XLA's names of the modes."""

    CROSS_REPLICA = "cross_replica"
    """Numbers are replicas, which meet within each partition."""
    CROSS_PARTITION = "cross_partition"
    """Numbers are partitions, which meet within each replica."""
    CROSS_REPLICA_AND_PARTITION = "cross_replica_and_partition"
    """Numbers are replicas, of which all partitions meet."""
    FLATTENED_ID = "flattened_id"
    """Numbers are replica times partitions plus partition."""


def collective_mode(instruction: Instruction) -> CollectiveMode:
    """The mode of a collective, which follows from its attributes."""
    has_channel = "channel_id" in instruction.attributes
    if instruction.opcode in _WITHOUT_GLOBAL_IDS:
        if has_channel:
            return CollectiveMode.CROSS_PARTITION
    elif instruction.attributes.get("use_global_device_ids") == "true":
        return CollectiveMode.FLATTENED_ID
    elif has_channel:
        return CollectiveMode.CROSS_REPLICA_AND_PARTITION
    return CollectiveMode.CROSS_REPLICA


def replica_groups(collective: Instruction) -> ReplicaGroups:
    """The groups of devices of a collective; none at all where it does not state any."""
    return parse_replica_groups(collective.attributes.get("replica_groups", "{}"))


def named_groups(collective: Instruction) -> Groups:
    """The groups of devices that a collective names, of a permute its pairs; empty for all.

    Those of more than MOST_DEVICES devices are all, too. O(devices).
    """
    attributes = collective.attributes
    if "source_target_pairs" in attributes:
        return parse_int_lists(attributes["source_target_pairs"])
    groups = replica_groups(collective)
    return groups.lists() if groups.named_count <= MOST_DEVICES else ()


def participants_key(collective: Instruction) -> Hashable:
    """Equal for two collectives if the same devices meet in them, each in the same rank.

    However the groups are written. O(devices) for each new text of groups.
    """
    groups = replica_groups(collective)
    is_small = groups.named_count <= MOST_DEVICES
    return collective_mode(collective), groups.lists() if is_small else groups.text
