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


NVLINK = "NVLink lane"
CARD = "network card"
"""The ways between devices of a target with a section `gpu`."""


class _Way(NamedTuple):
    """A way to another device, or to the host."""

    name: str | None
    """The link of the target, `NVLINK` or `CARD`; None where it names no link, and the bandwidth of
    its memory stands in."""
    bandwidth: float
    """Bytes per second in one direction."""


class Transfer(NamedTuple):
    """The bytes that one device passes on in an operation, and the way they take."""

    way: str | None
    """The name of the link in the target, `NVLINK` or `CARD`; None where it names none."""
    seconds: float
    """The time on the way."""
    launch: float
    """Microseconds before."""

    @property
    def time(self) -> Time:
        """The time from start to end."""
        origin = Origin.GUESS if self.way is None else Origin.LINK
        return Time(self.launch + self.seconds * _MEGA, origin)


class LinkTimes:
    """The times of transfers between the devices of one module, and between each and its host."""

    def __init__(self, module: Module, target: Target) -> None:
        self._target = target
        self._grid = device_counts(module)
        self._between = self._way([link.name for link in target.links if link.name != _HOST_LINK])
        self._to_host = self._way([_HOST_LINK])

    def host_time(self, size: int) -> Time:
        """The time to copy so many bytes to or from the memory of the host."""
        return _transfer(size, self._to_host).time

    def exchange(self, start: Instruction) -> Time:
        """A collective, send or recv, whole or its start: its bytes over the slowest link on the
        way, after the launch where the target states one. O(devices)."""
        transfer = self.transfer(start)
        if transfer is None:
            return Time(0.0, Origin.LINK)
        opcode = OWN_STARTS.get(start.opcode, start.opcode)
        if opcode in _UNEVEN:
            return Time(transfer.time.cycles, Origin.GUESS)
        return transfer.time

    def transfer(self, start: Instruction) -> Transfer | None:
        """The transfer of a collective, send or recv, whole or its start; None where a device has
        nobody to talk to. O(devices)."""
        size = _exchanged_bytes(start)
        if is_host_transfer(start):
            return _transfer(size, self._to_host)
        opcode = OWN_STARTS.get(start.opcode, start.opcode)
        share = 1.0 if opcode in _TO_ONE_DEVICE else self._passed_on(start)
        if opcode is Opcode.ALL_REDUCE:
            share *= 2
        if not share:
            return None
        if self._target.gpu is None:
            return _transfer(size * share, self._between)
        network = self._target.gpu.network
        way = _Way(NVLINK, network.lanes * network.lane_bandwidth)
        if not way.bandwidth or not self._is_in_one_node(start, network.partition_size):
            way = _Way(CARD, network.card_bandwidth)
        return _transfer(size * share, way, network.launch)

    def _passed_on(self, collective: Instruction) -> float:
        """The share of the bytes that each device of the largest group passes on in a ring."""
        devices = max(group_sizes(collective, self._grid), default=0)
        return (devices - 1) / devices if devices else 0.0

    def _way(self, names: list[str]) -> _Way:
        """The fastest of these links."""
        ways = [
            _Way(link.name, link.bandwidth / _ONE_WAY)
            for link in self._target.links
            if link.name in names
        ]
        memory = _Way(None, self._target.memory_bandwidth)
        return max(ways, key=lambda way: way.bandwidth, default=memory)

    def _is_in_one_node(self, start: Instruction, node_size: int) -> bool:
        """Whether devices of different nodes need not talk to each other."""
        text = start.attributes.get("source_target_pairs") or frontend_attribute(start, PAIRS)
        groups = parse_int_lists(text) if text else named_groups(start)
        if not any(groups):
            return self._grid.device_count <= node_size
        return all(len({device // node_size for device in group}) <= 1 for group in groups)


def _transfer(size: float, way: _Way, launch: float = 0.0) -> Transfer:
    return Transfer(way.name, size / way.bandwidth, launch)


def _exchanged_bytes(start: Instruction) -> int:
    """The bytes of the operands or of the result, whichever is more, also of a start."""
    if start.opcode in SEND_RECV:
        return leaf_bytes(start.shape.elements[0])
    given = sum(leaf_bytes(operand.shape) for operand in start.operands)
    result = leaf_bytes(start.shape)
    return max(given, result - given if start.opcode in _NAMING_OPERANDS else result)
