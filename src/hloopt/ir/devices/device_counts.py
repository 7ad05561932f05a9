"""The number of replicas and partitions a program is for."""

from __future__ import annotations

from hloopt.ir.attributes.values import parse_int_lists
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode, replica_groups
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.ir.shapes.shape import Shape

_GATHERS = (Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.REDUCE_SCATTER)
_OF_PARTITIONS = frozenset((CollectiveMode.CROSS_PARTITION, CollectiveMode.FLATTENED_ID))
_OWN_NUMBERS = (Opcode.REPLICA_ID, Opcode.PARTITION_ID)


def device_counts(module: Module) -> Grid:
    """Replicas and partitions: those of the header, or more where collectives name more devices.

    Many texts leave the counts out. What is missing is taken as partitions if all collectives
    number partitions or flattened ids, else as replicas. Flattened ids alone say neither: they
    are replicas where the program asks for the number of its replica alone. O(instructions).
    """
    replicas, partitions = module.replica_count, module.num_partitions
    needed = 1
    modes: set[CollectiveMode] = set()
    asked: set[Opcode] = set()
    for instruction in module.instructions():
        if instruction.opcode in COLLECTIVES:
            count = _devices_named(instruction)
            if count:
                needed = max(needed, count)
                modes.add(collective_mode(instruction))
        elif instruction.opcode in _OWN_NUMBERS:
            asked.add(instruction.opcode)
    if needed <= replicas * partitions:
        return Grid(replicas, partitions)
    by_replica = modes == {CollectiveMode.FLATTENED_ID} and asked == {Opcode.REPLICA_ID}
    are_partitions = modes <= _OF_PARTITIONS and not by_replica
    return Grid(replicas, needed) if are_partitions else Grid(needed, partitions)


def _devices_named(instruction: Instruction) -> int:
    """One more than the largest number among an instruction's devices; 0 if it has none."""
    attributes = instruction.attributes
    if "source_target_pairs" in attributes:
        pairs = parse_int_lists(attributes["source_target_pairs"])
        return max((number + 1 for pair in pairs for number in pair), default=0)
    groups = replica_groups(instruction)
    if groups.named_count > MOST_DEVICES:
        return groups.named_count
    if groups.named_count:
        return max(number + 1 for group in groups.lists() for number in group)
    if instruction.opcode in _GATHERS and instruction.operands:
        return _group_size(instruction)
    return 0


def _group_size(instruction: Instruction) -> int:
    """The number of shards the whole has, by the shapes."""
    result = instruction.shape
    if instruction.opcode is Opcode.ALL_GATHER_START:
        result = result.elements[1]
    sizes = (_elements(instruction.operands[0].shape), _elements(result))
    return max(sizes) // max(1, min(sizes))


def _elements(shape: Shape) -> int:
    return next((leaf.element_count() for leaf in shape.leaves() if leaf.is_array), 1)
