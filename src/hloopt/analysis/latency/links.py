"""Times over the links of a target: what devices exchange, and copies to and from the host.

Devices that meet in a collective stand in a ring. Of n devices each passes on (n - 1)/n of the
bytes, for an all-reduce twice that. These are bounds at the full rate of all links of a device.
Times are in microseconds.
"""

from __future__ import annotations

from typing import NamedTuple

from hloopt.analysis.async_operations import OWN_STARTS, SEND_RECV, is_host_transfer
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.latency.model import Origin, Time
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.values import parse_int_lists
from hloopt.ir.devices.collective_devices import group_sizes
from hloopt.ir.devices.collective_mode import named_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.transfers import PAIRS
from hloopt.targets.target import Target

_HOST_LINK = "pcie"
_ONE_WAY = 2
"""The bandwidth of links is that of both directions together."""
_TO_ONE_DEVICE = frozenset((Opcode.COLLECTIVE_PERMUTE, *SEND_RECV))
_UNEVEN = frozenset((Opcode.RAGGED_ALL_TO_ALL,))
"""Collectives whose operands say only how much they move at most."""
_NAMING_OPERANDS = (Opcode.ALL_GATHER_START, Opcode.COLLECTIVE_PERMUTE_START)
"""Starts whose shapes name their operands, too."""
_MEGA = 1e6


class _Rate(NamedTuple):
    """Bytes per second in one direction."""

    bandwidth: float
    is_known: bool
    """Whether the target names a link; else the bandwidth of its memory stands in."""


class LinkTimes:
    """The times of transfers between the devices of one module, and between each and its host."""

    def __init__(self, module: Module, target: Target) -> None:
        self._target = target
        self._grid = device_counts(module)
        self._between = self._rate([link.name for link in target.links if link.name != _HOST_LINK])
        self._to_host = self._rate([_HOST_LINK])

    def host_time(self, size: int) -> Time:
        """The time to copy so many bytes to or from the memory of the host."""
        return self._time(size, self._to_host)

    def exchange(self, start: Instruction) -> Time:
        """A collective, send or recv, whole or its start: its bytes over the slowest link on the
        way, after the launch where the target states one. O(devices)."""
        size = _exchanged_bytes(start)
        if is_host_transfer(start):
            return self.host_time(size)
        opcode = OWN_STARTS.get(start.opcode, start.opcode)
        share = 1.0 if opcode in _TO_ONE_DEVICE else self._passed_on(start)
        if opcode is Opcode.ALL_REDUCE:
            share *= 2
        if not share:
            return Time(0.0, Origin.LINK)
        rate, launch = self._between, 0.0
        if self._target.gpu is not None:
            network = self._target.gpu.network
            launch, rate = network.launch, _Rate(network.lanes * network.lane_bandwidth, True)
            if not rate.bandwidth or not self._is_in_one_node(start, network.partition_size):
                rate = _Rate(network.card_bandwidth, True)
        time = self._time(size * share, rate)
        return Time(launch + time.cycles, Origin.GUESS if opcode in _UNEVEN else time.origin)

    def _passed_on(self, collective: Instruction) -> float:
        """The share of the bytes that each device of the largest group passes on in a ring."""
        devices = max(group_sizes(collective, self._grid), default=0)
        return (devices - 1) / devices if devices else 0.0

    def _rate(self, names: list[str]) -> _Rate:
        """The rate of the fastest of these links."""
        rates = [link.bandwidth / _ONE_WAY for link in self._target.links if link.name in names]
        return _Rate(max(rates, default=self._target.memory_bandwidth), bool(rates))

    @staticmethod
    def _time(size: float, rate: _Rate) -> Time:
        origin = Origin.LINK if rate.is_known else Origin.GUESS
        return Time(size / rate.bandwidth * _MEGA, origin)

    def _is_in_one_node(self, start: Instruction, node_size: int) -> bool:
        """Whether devices of different nodes need not talk to each other."""
        text = start.attributes.get("source_target_pairs") or frontend_attribute(start, PAIRS)
        groups = parse_int_lists(text) if text else named_groups(start)
        if not any(groups):
            return self._grid.device_count <= node_size
        return all(len({device // node_size for device in group}) <= 1 for group in groups)


def _exchanged_bytes(start: Instruction) -> int:
    """The bytes of the operands or of the result, whichever is more, also of a start."""
    if start.opcode in SEND_RECV:
        return leaf_bytes(start.shape.elements[0])
    given = sum(leaf_bytes(operand.shape) for operand in start.operands)
    result = leaf_bytes(start.shape)
    return max(given, result - given if start.opcode in _NAMING_OPERANDS else result)
