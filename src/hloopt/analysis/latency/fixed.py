"""Fixed sizes: a time per kind of instruction, whatever its shape. A cycle is an abstract unit."""

from __future__ import annotations

from hloopt.analysis.async_operations import SEND_RECV, async_form, is_pair
from hloopt.analysis.latency.model import (
    FREE_TIME,
    ORDINARY_EDGE,
    ORDINARY_EDGE_TIME,
    LatencyModel,
    Origin,
    Time,
    stated_latency,
)
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.devices.transfers import STREAM
from hloopt.ir.shapes.shape_size import shape_bytes

LOW, MEDIUM, HIGH = 1.0, 1000.0, 5000.0
_LOW, _MEDIUM, _HIGH = (Time(cycles, Origin.CONSTANT) for cycles in (LOW, MEDIUM, HIGH))
_FUSIONS = {"kLoop": _MEDIUM, "kOutput": _HIGH}


class FixedModel(LatencyModel):
    """XLA's approximate estimator: a loop fusion takes 1000, an output fusion or convolution and
    the way from start to done 5000, anything else 1."""

    @property
    def cycles_per_microsecond(self) -> float:
        return 1.0

    @property
    def is_abstract(self) -> bool:
        return True

    def node_time(self, instruction: Instruction) -> Time:
        """O(1)."""
        opcode = instruction.opcode
        if opcode is Opcode.FUSION:
            return _FUSIONS.get(fusion_kind_of(instruction), _LOW)
        return _HIGH if opcode is Opcode.CONVOLUTION else _LOW

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        """O(1)."""
        outer, inner = async_form(source)
        if outer is Opcode.ASYNC_START and async_form(target) == (Opcode.ASYNC_DONE, inner):
            return _HIGH
        return ORDINARY_EDGE_TIME

    def whole_time(self, collective: Instruction) -> Time:
        """As from start to done. O(1)."""
        return _HIGH


FREE = frozenset(
    (
        *(Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST, Opcode.CONSTANT, Opcode.PARAMETER),
        *(Opcode.TUPLE, Opcode.PARTITION_ID, Opcode.REPLICA_ID, Opcode.OPT_BARRIER),
    )
)
_COSTLY_SEND = 1024
_COSTLY_TRANSFER = 6
_COSTLY_PERMUTE = 14
_COSTLY_ALL_REDUCE = 4
_LARGE_ALL_REDUCE = 30 << 20
_DEVICES_PER_NODE = 8


class GpuFixedModel(FixedModel):
    """The default estimator of XLA:GPU: as the approximate one, but what moves no data is free and
    a custom call takes what `latency_metadata` says, or 1000."""

    def __init__(self, *, approx_costly_collectives: bool = False) -> None:
        self.approx_costly_collectives = approx_costly_collectives

    def node_time(self, instruction: Instruction) -> Time:
        """O(1), for a transpose O(rank)."""
        opcode = instruction.opcode
        if opcode in FREE or (opcode is Opcode.TRANSPOSE and moves_no_data(instruction)):
            return FREE_TIME
        if opcode is Opcode.CUSTOM_CALL:
            stated = stated_latency(instruction, self.cycles_per_microsecond)
            return _MEDIUM if stated is None else Time(stated, Origin.STATED)
        return super().node_time(instruction)

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        """O(1)."""
        if is_pair(source, target):
            return self.whole_time(source)
        return ORDINARY_EDGE_TIME

    def latency(self, source: Instruction, target: Instruction) -> float:
        """O(1)."""
        return self.whole_time(source).cycles if is_pair(source, target) else ORDINARY_EDGE

    def whole_time(self, collective: Instruction) -> Time:
        """As from start to done. O(1)."""
        if frontend_attribute(collective, STREAM) == "p2p":
            return Time(_transfer_latency(collective), Origin.CONSTANT)
        if (
            self.approx_costly_collectives
            and collective.opcode in (Opcode.ALL_REDUCE_START, Opcode.ALL_REDUCE)
            and sum(map(shape_bytes, collective.shape.leaves())) > _LARGE_ALL_REDUCE
        ):
            return Time(_COSTLY_ALL_REDUCE * HIGH, Origin.CONSTANT)
        return _HIGH


def _transfer_latency(start: Instruction) -> float:
    if start.opcode is Opcode.SEND:
        return _COSTLY_SEND * HIGH
    if async_form(start).inner is Opcode.COLLECTIVE_PERMUTE and start.opcode not in SEND_RECV:
        nodes = start.parent.module.num_partitions // _DEVICES_PER_NODE
        return max(nodes - 1, 1) * _COSTLY_TRANSFER * HIGH + _COSTLY_PERMUTE * HIGH
    return _COSTLY_TRANSFER * HIGH


def moves_no_data(transpose: Instruction) -> bool:
    """Whether the layouts of a transpose's operand and result describe the same bytes. O(rank)."""
    operand, result = transpose.operands[0].shape, transpose.shape
    text = transpose.attributes.get("dimensions", "{}").strip("{} ")
    permutation = [int(number) for number in text.split(",")] if text else []
    source_order = operand.layout.minor_to_major
    target_order = result.layout.minor_to_major
    if operand.element_type is not result.element_type:
        return False
    return source_order == tuple(permutation[dimension] for dimension in target_order)
