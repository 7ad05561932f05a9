"""Relations of dimensions by collectives."""

from __future__ import annotations

from hloopt.ir.devices.collective_mode import replica_groups
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.leaves import leaf_count
from hloopt.shrink.factors import Factor
from hloopt.shrink.flow import Dimensions, Flow, Leaves, ints, relation


def _operands(flow: Flow, instruction: Instruction) -> Leaves:
    return [leaf for operand in instruction.operands for leaf in flow.values[operand]]


def _dimension(instruction: Instruction) -> int:
    return ints(instruction, "dimensions")[0]


@relation(
    *(Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.ALL_REDUCE_DONE),
    Opcode.COLLECTIVE_BROADCAST,
)
def _unchanged(flow: Flow, instruction: Instruction) -> Leaves:
    return _operands(flow, instruction)


@relation(Opcode.COLLECTIVE_PERMUTE)
def _collective_permute(flow: Flow, instruction: Instruction) -> Leaves:
    if "slice_sizes" in instruction.attributes:
        return flow.stay_all(instruction, "collective-permute in place")
    return _operands(flow, instruction)


@relation(Opcode.COLLECTIVE_PERMUTE_START)
def _collective_permute_start(flow: Flow, instruction: Instruction) -> Leaves:
    if "slice_sizes" in instruction.attributes:
        return flow.stay_all(instruction, "collective-permute in place")
    operands = _operands(flow, instruction)
    return [*operands, *operands, *flow.fresh(instruction.shape)[2 * len(operands) :]]


@relation(Opcode.COLLECTIVE_PERMUTE_DONE, Opcode.ALL_GATHER_DONE)
def _second_half(flow: Flow, instruction: Instruction) -> Leaves:
    count = leaf_count(instruction.shape)
    return flow.values[instruction.operands[0]][count : 2 * count]


@relation(Opcode.ALL_GATHER)
def _all_gather(flow: Flow, instruction: Instruction) -> Leaves:
    results = flow.fresh(instruction.shape)
    for operand, result in zip(_operands(flow, instruction), results, strict=True):
        _relate_shards(flow, instruction, operand, result)
    return results


@relation(Opcode.ALL_GATHER_START)
def _all_gather_start(flow: Flow, instruction: Instruction) -> Leaves:
    operands = _operands(flow, instruction)
    count = len(operands)
    leaves = [*operands, *flow.fresh(instruction.shape)[count:]]
    for operand, result in zip(operands, leaves[count : 2 * count], strict=True):
        _relate_shards(flow, instruction, operand, result)
    return leaves


@relation(Opcode.REDUCE_SCATTER)
def _reduce_scatter(flow: Flow, instruction: Instruction) -> Leaves:
    results = flow.fresh(instruction.shape)
    for operand, result in zip(_operands(flow, instruction), results, strict=True):
        _relate_shards(flow, instruction, result, operand)
    return results


def _relate_shards(
    flow: Flow, instruction: Instruction, shard: Dimensions, whole: Dimensions
) -> None:
    """`whole` is shards side by side in one dimension, as many as there are devices."""
    dimension = _dimension(instruction)
    for d, (part, full) in enumerate(zip(shard, whole, strict=True)):
        if d != dimension or part.size <= 0:
            flow.same(part, full, instruction)
        else:
            _cut(flow, instruction, full, full.size // part.size, part)


def _cut(flow: Flow, instruction: Instruction, whole: Factor, count: int, part: Factor) -> None:
    shards = Factor(count, f"%{instruction.name}: the number of devices in {instruction.opcode}")
    flow.products([whole], [shards, part], instruction)


@relation(Opcode.ALL_TO_ALL)
def _all_to_all(flow: Flow, instruction: Instruction) -> Leaves:
    operands = _operands(flow, instruction)
    if "dimensions" not in instruction.attributes:
        for other in operands[1:]:  # any of them becomes part of any result
            flow.join(operands[:1], [other], instruction)
        return operands
    groups = replica_groups(instruction)
    dimension = _dimension(instruction)
    count = groups.group_size or flow.module.replica_count * flow.module.num_partitions
    for operand in operands:
        whole = operand[dimension]
        if count and whole.size > 0 and whole.size % count == 0:
            _cut(flow, instruction, whole, count, Factor(whole.size // count))
        else:
            flow.stay([whole], instruction, "all-to-all of unequal parts")
    return operands
