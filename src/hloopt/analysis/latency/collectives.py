"""The time collectives take: what was measured within a node, formulas between nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from hloopt.analysis.async_operations import OWN_STARTS
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.latency.collective_tables import (
    CollectiveTable,
    Exchange,
    Groups,
    XlaTable,
    permute_kind,
)
from hloopt.analysis.latency.model import Origin, TableTime, Time
from hloopt.analysis.latency.network import (
    Reach,
    all_to_all_time,
    kernel_all_reduce_time,
    reach_of,
    ring_time,
    transfer_time,
)
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.ir.attributes.typed import pairs_of
from hloopt.ir.devices.collective_mode import (
    CollectiveMode,
    collective_mode,
    named_groups,
    replica_groups,
)
from hloopt.targets.gpu import Gpu
from hloopt.targets.performance import load_tables

_KERNELS = "KERNEL_STRATEGY_TRITON"


class Payload(NamedTuple):
    """The data that a collective moves, in bytes on one device."""

    sent: int
    """By which throughputs are measured."""
    accessed: int
    """To and from the device's own memory."""


class CollectiveTimes:
    """The times of collectives on a GPU.

    `memory_bandwidth` is in bytes per second; `arithmetic` says how long an all-reduce or
    reduce-scatter computes, in microseconds. `table` has what was measured within a node, in place
    of what XLA measured on the GPU; with `smooth` its times are monotone in size.
    """

    def __init__(
        self,
        gpu: Gpu,
        memory_bandwidth: float,
        arithmetic: Callable[[Instruction], float],
        table: CollectiveTable | None = None,
        *,
        smooth: bool = False,
    ) -> None:
        self._gpu = gpu
        self._memory_bandwidth = memory_bandwidth
        self._arithmetic = arithmetic
        self._given = table
        self._smooth = smooth
        self._known: dict[tuple[object, ...], tuple[Time | None, TableTime | None]] = {}

    def of(self, collective: Instruction) -> Time | None:
        """From its start to its end; None where nothing is known.

        `collective` is a collective or its own kind of start. O(devices) the first time that one
        like it is asked about.
        """
        return self._found(collective)[0]

    def by_table(self, collective: Instruction) -> TableTime | None:
        """The time by a table of measurements, as it is and smoothed; None where another source
        tells it. As `of`."""
        return self._found(collective)[1]

    def _found(self, collective: Instruction) -> tuple[Time | None, TableTime | None]:
        attributes = collective.attributes
        key = (
            *(collective.opcode, collective.shape, *[o.shape for o in collective.operands]),
            collective_mode(collective),
            *(attributes.get(name) for name in _READ),
            *(callee.root.opcode for callee in collective.called),
        )
        if key not in self._known:
            opcode = OWN_STARTS.get(collective.opcode, collective.opcode)
            found = self._time(collective, opcode) if opcode in _SUPPORTED else None
            if isinstance(found, TableTime):
                time = found.smoothed if self._smooth else found.measured
                self._known[key] = Time(time, Origin.COLLECTIVE_TABLE), found
            else:
                self._known[key] = found, None
        return self._known[key]

    def is_one_kernel(self, all_reduce: Instruction) -> bool:
        """Whether an all-reduce is a kernel that XLA generated, and has the formula of one."""
        if not self._gpu.kernel_formula:
            return False
        config = backend_config(all_reduce).get("collective_backend_config", {})
        strategy = config.get("kernel_strategy") if isinstance(config, dict) else None
        return isinstance(strategy, str) and strategy.startswith(_KERNELS)

    def _time(self, collective: Instruction, opcode: Opcode) -> Time | TableTime | None:
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
            exchange = Exchange(opcode, payload.sent, reach.devices)
            if collective.opcode in _EXACT and collective.shape.is_array:
                groups, kind = _canonical_groups(collective), collective.shape.type_name
                exchange = exchange._replace(groups=groups, element_type=kind)
            return self._measured(exchange)
        time = self._between_nodes(opcode, payload.sent, reach)
        if time is None:
            return None
        if opcode in (Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER):
            time += self._arithmetic(collective)
        return Time(time + memory, Origin.NETWORK)

    def _between_nodes(self, opcode: Opcode, size: int, reach: Reach) -> float | None:
        network, (_, nodes, communicators) = self._gpu.network, reach
        if opcode is Opcode.ALL_TO_ALL:
            return all_to_all_time(network, size, nodes=nodes, communicators=communicators)
        is_all_reduce = opcode is Opcode.ALL_REDUCE
        return ring_time(
            network, size, nodes=nodes, communicators=communicators, is_all_reduce=is_all_reduce
        )

    def _permute(self, permute: Instruction) -> Time | TableTime | None:
        pairs = pairs_of(permute)
        if not pairs:
            return None
        size = sum(leaf_bytes(operand.shape) for operand in permute.operands)
        node = self._gpu.network.partition_size
        if all(source // node == target // node for source, target in pairs):
            return self._measured(Exchange(Opcode.COLLECTIVE_PERMUTE, size, 0, permute_kind(pairs)))
        accessed = size + leaf_bytes(permute.shape)
        time = transfer_time(self._gpu.network, size, nodes=2)
        return Time(time + accessed / self._memory_bandwidth * 1e6, Origin.NETWORK)

    def _measured(self, exchange: Exchange) -> TableTime | None:
        table = self._table
        rate = None if table is None else table.throughput(exchange)
        curve = None if table is None else table.curve(exchange)
        if rate is None or curve is None:
            return None
        return TableTime(exchange.size / rate * 1e6, curve.time(exchange.size))

    @cached_property
    def _table(self) -> CollectiveTable | None:
        """Measured collectives: the table of a user, else XLA's of this GPU; None without."""
        if self._given is not None or self._gpu.tables is None:
            return self._given
        return XlaTable(load_tables(self._gpu.tables).collectives)

    def _reach(self, collective: Instruction) -> Reach | None:
        """The reach of the groups; None where they are not alike."""
        groups = named_groups(collective)
        node = self._gpu.network.partition_size
        if not any(groups):
            devices = _all_devices(collective)
            if collective.parent.module.replica_count <= node:  # XLA does not ask for partitions
                return Reach(devices, 1, 1)
            groups = (tuple(range(devices)),)
        return reach_of(groups, node)


_SUPPORTED = (
    *(Opcode.ALL_REDUCE, Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL),
    Opcode.COLLECTIVE_PERMUTE,
)
_READ = ("replica_groups", "source_target_pairs", "backend_config")
_EXACT = (Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER)
"""The collectives for which XLA looks for what was measured with their very groups and type; not
their own kinds of start."""


def _canonical_groups(collective: Instruction) -> Groups:
    """The groups by which XLA looks: of those that are lists only their number and size count."""
    groups = replica_groups(collective)
    if groups.tile is not None or groups.mesh is not None:
        return groups.lists()
    size = groups.group_size or _all_devices(collective)
    count = groups.group_count or 1
    return tuple(tuple(range(size * group, size * (group + 1))) for group in range(count))


def _all_devices(collective: Instruction) -> int:
    """The number of devices that meet in a collective without groups."""
    module, mode = collective.parent.module, collective_mode(collective)
    replicas = 1 if mode is CollectiveMode.CROSS_PARTITION else module.replica_count
    return replicas if mode is CollectiveMode.CROSS_REPLICA else replicas * module.num_partitions


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
