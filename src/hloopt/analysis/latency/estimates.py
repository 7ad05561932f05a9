"""Estimates from bytes, flops and the peak rates of a target, for what no model of XLA knows.

They are bounds: nothing real is as fast. Times are in microseconds.
"""

from __future__ import annotations

from hloopt.analysis.async_operations import SEND_RECV, is_host_transfer
from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.roofline import Roofline
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.values import parse_int_lists
from hloopt.ir.devices.collective_mode import named_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.transfers import PAIRS
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.ir.shapes.shape import Shape
from hloopt.targets.target import Target

_HOST_LINK = "pcie"
_HOST_OPCODES = (Opcode.INFEED, Opcode.OUTFEED)
_ALL_REDUCES = (Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START)
_NAMING_OPERANDS = (Opcode.ALL_GATHER_START, Opcode.COLLECTIVE_PERMUTE_START)
"""Starts whose shapes name their operands, too."""
_MEGA = 1e6


class Estimates:
    """The least times of instructions of one module on one target."""

    def __init__(self, module: Module, target: Target) -> None:
        self._target = target
        self._costs = CostAnalysis(module)
        self._roofline = Roofline(self._costs, target)
        grid = device_counts(module)
        self._devices = grid.replicas * grid.partitions
        rates = [link.bandwidth / 2 for link in target.links if link.name == _HOST_LINK]
        self._host_rate = rates[0] if rates else target.memory_bandwidth
        """Bytes per second in one direction; links are given for both together."""

    def work(self, instruction: Instruction) -> float:
        """Arithmetic or memory, whatever takes longer; over the link to the host what is there.

        O(1) for most, and linear in what a fusion holds the first time.
        """
        seconds = self._roofline.of(instruction).seconds
        cost = self._costs.of(instruction)
        taken = [operand.shape for operand in instruction.operands]
        read = min(sum(map(_host_bytes, taken)), cost.bytes_read)
        written = min(_host_bytes(instruction.shape), cost.bytes_written)
        if instruction.opcode in _HOST_OPCODES:
            read, written = cost.bytes_read, cost.bytes_written
        return max(seconds, (read + written) / self._host_rate) * _MEGA

    def copy(self, start: Instruction) -> float:
        """A copy-start until its done. O(leaves)."""
        size = sum(leaf_bytes(operand.shape) for operand in start.operands)
        if _host_bytes(start.shape):
            return size / self._host_rate * _MEGA
        return 2 * size / self._target.memory_bandwidth * _MEGA

    def exchange(self, start: Instruction) -> float:
        """A collective, send or recv: the launch, and the bytes over the slowest link on the way.

        O(devices).
        """
        size = _exchanged_bytes(start)
        if is_host_transfer(start):
            return size / self._host_rate * _MEGA
        gpu = self._target.gpu
        assert gpu is not None  # else nothing has times
        network = gpu.network
        rounds = 2 if start.opcode in _ALL_REDUCES else 1
        rate = network.lanes * network.lane_bandwidth
        if not rate or not self._is_in_one_node(start, network.node_size):
            rate = network.card_bandwidth
        return network.launch + rounds * size / rate * _MEGA

    def _is_in_one_node(self, start: Instruction, node_size: int) -> bool:
        """Whether devices of different nodes need not talk to each other."""
        text = start.attributes.get("source_target_pairs") or frontend_attribute(start, PAIRS)
        groups = parse_int_lists(text) if text else named_groups(start)
        if not any(groups):
            return self._devices <= node_size
        return all(len({device // node_size for device in group}) <= 1 for group in groups)


def _exchanged_bytes(start: Instruction) -> int:
    """The larger of what it takes and what it leaves, the same for a start and what it starts."""
    if start.opcode in SEND_RECV:
        return leaf_bytes(start.shape.elements[0])
    given = sum(leaf_bytes(operand.shape) for operand in start.operands)
    result = leaf_bytes(start.shape)
    return max(given, result - given if start.opcode in _NAMING_OPERANDS else result)


def _host_bytes(shape: Shape) -> int:
    """The bytes of a shape that are in the memory of the host."""
    return sum(
        leaf_bytes(leaf)
        for leaf in shape.leaves()
        if leaf.is_array and leaf.layout.memory_space == HOST_MEMORY_SPACE
    )
