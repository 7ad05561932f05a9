"""The time collectives take: what was measured within a node, formulas between nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from hloopt.analysis.async_operations import OWN_STARTS
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.latency.model import Origin, Time
from hloopt.analysis.latency.network import (
    all_to_all_time,
    kernel_all_reduce_time,
    ring_time,
    transfer_time,
)
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.ir.attributes.typed import pairs_of
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode, named_groups
from hloopt.targets.gpu import Gpu
from hloopt.targets.performance import load_tables

SMALLEST_MEASURED = 1 << 10
_LARGEST_MEASURED = 1 << 30
_LARGEST_GROUP = 8
_KERNELS = "KERNEL_STRATEGY_TRITON"


class Payload(NamedTuple):
    """The data that a collective moves, in bytes on one device."""

    sent: int
    """By which throughputs are measured."""
    accessed: int
    """To and from the device's own memory."""


def permute_kind(pairs: Collection[Sequence[int]]) -> str:
    """The kind of collective-permute that pairs of (source, target) make.

    `one-way`: no device both sends and receives; `two-way`: some do; `mutual`: those that one
    device sends to send to it.
    """
    known = {(source, target) for source, target in pairs}
    if {source for source, _ in known}.isdisjoint(target for _, target in known):
        return "one-way"
    return "mutual" if all((target, source) in known for source, target in known) else "two-way"


class CollectiveTimes:
    """The times of collectives on a GPU.

    `memory_bandwidth` is in bytes per second; `arithmetic` says how long an all-reduce or
    reduce-scatter computes, in microseconds.
    """

    def __init__(
        self,
        gpu: Gpu,
        memory_bandwidth: float,
        arithmetic: Callable[[Instruction], float],
    ) -> None:
        self._gpu = gpu
        self._memory_bandwidth = memory_bandwidth
        self._arithmetic = arithmetic
        self._known: dict[tuple[object, ...], Time | None] = {}

    def of(self, collective: Instruction) -> Time | None:
        """From its start to its end; None where nothing is known.

        `collective` is a collective or its own kind of start. O(devices) the first time that one
        like it is asked about.
        """
        attributes = collective.attributes
        key = (
            *(collective.opcode, collective.shape, *[o.shape for o in collective.operands]),
            collective_mode(collective),
            *(attributes.get(name) for name in _READ),
            *(callee.root.opcode for callee in collective.called),
        )
        if key not in self._known:
            opcode = OWN_STARTS.get(collective.opcode, collective.opcode)
            self._known[key] = self._time(collective, opcode) if opcode in _SUPPORTED else None
        return self._known[key]

    def is_one_kernel(self, all_reduce: Instruction) -> bool:
        """Whether an all-reduce is a kernel that XLA generated, and has the formula of one."""
        if not self._gpu.kernel_formula:
            return False
        config = backend_config(all_reduce).get("collective_backend_config", {})
        strategy = config.get("kernel_strategy") if isinstance(config, dict) else None
        return isinstance(strategy, str) and strategy.startswith(_KERNELS)

    def _time(self, collective: Instruction, opcode: Opcode) -> Time | None:
        if opcode is Opcode.COLLECTIVE_PERMUTE:
            return self._permute(collective)
        reach = self._reach(collective)
        if reach is None:
            return None
        payload = _payload(collective, opcode, reach.devices)
        memory = payload.accessed / self._memory_bandwidth * 1e6
        if reach.nodes == 1:
            if opcode is Opcode.ALL_REDUCE and self.is_one_kernel(collective):
                time = kernel_all_reduce_time(self._gpu.network, payload.sent, reach.devices)
                return None if time is None else Time(time + memory, Origin.NETWORK)
            return self._measured(opcode, str(_measured_group(reach.devices)), payload.sent)
        time = self._between_nodes(opcode, payload.sent, reach)
        if time is None:
            return None
        if opcode in (Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER):
            time += self._arithmetic(collective)
        return Time(time + memory, Origin.NETWORK)

    def _between_nodes(self, opcode: Opcode, size: int, reach: _Reach) -> float | None:
        network, (_, nodes, communicators) = self._gpu.network, reach
        if opcode is Opcode.ALL_TO_ALL:
            return all_to_all_time(network, size, nodes=nodes, communicators=communicators)
        is_all_reduce = opcode is Opcode.ALL_REDUCE
        return ring_time(
            network, size, nodes=nodes, communicators=communicators, is_all_reduce=is_all_reduce
        )

    def _permute(self, permute: Instruction) -> Time | None:
        pairs = pairs_of(permute)
        if not pairs:
            return None
        size = sum(leaf_bytes(operand.shape) for operand in permute.operands)
        node = self._gpu.network.node_size
        if all(source // node == target // node for source, target in pairs):
            return self._measured(Opcode.COLLECTIVE_PERMUTE, permute_kind(pairs), size)
        accessed = size + leaf_bytes(permute.shape)
        time = transfer_time(self._gpu.network, size, nodes=2)
        return Time(time + accessed / self._memory_bandwidth * 1e6, Origin.NETWORK)

    def _measured(self, opcode: Opcode, group: str, size: int) -> Time | None:
        if self._gpu.tables is None:
            return None
        rates = load_tables(self._gpu.tables).collectives.get(opcode.value, {}).get(group)
        if rates is None:
            return None
        nearest = min(max(nearest_power(size), SMALLEST_MEASURED), _LARGEST_MEASURED)
        step = (nearest // SMALLEST_MEASURED).bit_length() - 1
        return Time(size / rates[step] * 1e6, Origin.COLLECTIVE_TABLE)

    def _reach(self, collective: Instruction) -> _Reach | None:
        """The reach of the groups; None where they are not alike."""
        groups = named_groups(collective)
        node = self._gpu.network.node_size
        if not any(groups):
            devices = _all_devices(collective)
            if collective.parent.module.replica_count <= node:  # XLA does not ask for partitions
                return _Reach(devices, 1, 1)
            groups = (tuple(range(devices)),)
        spreads = {tuple(sorted(_spread(group, node))) for group in groups}
        if len(spreads) > 1:
            return None
        (spread,) = spreads
        devices = len(groups[0])
        if len(spread) == 1:
            return _Reach(devices, 1, len(groups))
        if all(count == node for count in spread):
            return _Reach(devices, devices // node, len(groups))
        return _Reach(devices, devices, len(groups))


class _Reach(NamedTuple):
    """The devices that a collective connects."""

    devices: int
    """Of one group."""
    nodes: int
    communicators: int
    """Groups that communicate at the same time."""


_SUPPORTED = (
    *(Opcode.ALL_REDUCE, Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL),
    Opcode.COLLECTIVE_PERMUTE,
)
_READ = ("replica_groups", "source_target_pairs", "backend_config")


def _all_devices(collective: Instruction) -> int:
    """The number of devices that meet in a collective without groups."""
    module, mode = collective.parent.module, collective_mode(collective)
    replicas = 1 if mode is CollectiveMode.CROSS_PARTITION else module.replica_count
    return replicas if mode is CollectiveMode.CROSS_REPLICA else replicas * module.num_partitions


def _spread(group: Sequence[int], node: int) -> list[int]:
    """The number of devices of a group on each node that has any."""
    counts: dict[int, int] = {}
    for device in group:
        counts[device // node] = counts.get(device // node, 0) + 1
    return list(counts.values())


def _payload(collective: Instruction, opcode: Opcode, devices: int) -> Payload:
    given = sum(leaf_bytes(operand.shape) for operand in collective.operands)
    result = leaf_bytes(collective.shape)
    if collective.opcode is Opcode.ALL_GATHER_START:  # its shape names the operands, too
        result -= given
    if opcode in (Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER):
        whole = result if opcode is Opcode.ALL_GATHER else given
        part = whole // devices
        return Payload(whole, part * (2 * devices - 1) + part * devices)
    if collective.opcode is Opcode.ALL_REDUCE_START:  # in place: XLA:GPU counts no operands
        return Payload(result, result)
    return Payload(result, result + given)


def _measured_group(devices: int) -> int:
    return min(max(nearest_power(devices), 2), _LARGEST_GROUP)


def nearest_power(number: int) -> int:
    """The power of two nearest to a number, the larger one of two as near; 1 for 0."""
    if number < 1:
        return 1
    below = 1 << (number.bit_length() - 1)
    return below if number - below < 2 * below - number else 2 * below
