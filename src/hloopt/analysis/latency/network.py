"""The time collectives take on the wires: formulas, times in microseconds.

Between nodes messages are cut into chunks. One step of `size` bytes takes

    size / bandwidth of the card * 1.025 + chunks * time to prepare one + round trip

and an algorithm is so many steps after the launch: XLA's speed-of-light model of NCCL.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from hloopt.targets.gpu import Network

_PROTOCOL = 1.025
"""The protocol's overhead per byte."""
_ONE_SHOT = 256 << 10
"""Bytes up to which an all-reduce in one kernel reads all of every device."""
_KERNEL_LAUNCH = 1.0


def ring_time(
    network: Network, size: int, *, nodes: int, communicators: int = 1, is_all_reduce: bool = False
) -> float | None:
    """An all-gather, reduce-scatter or all-reduce of `size` bytes around a ring.

    None where the communicators do not share the devices of a node evenly.
    """
    if network.node_size % communicators:
        return None
    devices = nodes * network.node_size // communicators
    rounds = 2 if is_all_reduce else 1
    steps = rounds * (devices - 1) / (devices // nodes)
    return network.launch + steps * _step(network, size // devices)


def transfer_time(network: Network, size: int, *, nodes: int) -> float:
    """Sending `size` bytes to one other device, as a ring of two devices."""
    return network.launch + _step(network, size) / max(2 // nodes, 1)


def all_to_all_time(
    network: Network, size: int, *, nodes: int, communicators: int = 1
) -> float | None:
    """Every device sends to those of all other nodes; `size` is all that one sends.

    None where the communicators do not share the devices of a node evenly.
    """
    if network.node_size % communicators:
        return None
    devices = nodes * network.node_size // communicators
    steps = devices // nodes * (nodes - 1)
    if not steps:
        return network.launch
    return network.launch + steps * _step(network, size // (devices - 1))


def _step(network: Network, size: int) -> float:
    wire = size / network.card_bandwidth * 1e6 * _PROTOCOL
    return wire + ceil(size / network.chunk_size) * network.chunk_time + network.round_trip


def kernel_all_reduce_time(network: Network, size: int, devices: int) -> float | None:
    """An all-reduce within a node by one kernel that reads its peers; None without NVLink."""
    bandwidth = network.lanes * network.lane_bandwidth / 1e6
    if not bandwidth:
        return None
    if size <= _ONE_SHOT:
        return _KERNEL_LAUNCH + (devices - 1) * size / bandwidth + network.barrier
    part = (devices - 1) / devices * size / bandwidth + network.barrier
    return _KERNEL_LAUNCH + 2 * part


class Reach(NamedTuple):
    """The devices that a collective connects."""

    devices: int
    """The devices of one group."""
    nodes: int
    communicators: int
    """Groups that communicate at the same time."""


def reach_of(groups: Sequence[Sequence[int]], node: int) -> Reach | None:
    """The reach of groups over partitions of `node` devices; None where they are not alike.

    O(devices).
    """
    spreads = {tuple(sorted(_spread(group, node))) for group in groups}
    if len(spreads) > 1:
        return None
    (spread,) = spreads
    devices = len(groups[0])
    if len(spread) == 1:
        return Reach(devices, 1, len(groups))
    if all(count == node for count in spread):
        return Reach(devices, devices // node, len(groups))
    return Reach(devices, devices, len(groups))


def _spread(group: Sequence[int], node: int) -> list[int]:
    """The number of devices of a group on each node that has any."""
    counts: dict[int, int] = {}
    for device in group:
        counts[device // node] = counts.get(device // node, 0) + 1
    return list(counts.values())
