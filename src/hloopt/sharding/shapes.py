"""The parts of values that each device has, by the shardings of the program for all devices."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.attributes.values.shards import Shards
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.leaf_shards import Told, leaf_shards
from hloopt.ir.shapes.leaves import leaf_count

Dimensions = tuple[int, ...]


class DeviceShapes:
    """Parts of the values of a program, each instruction looked at once.

    A value without a sharding is replicated, as the partitioner takes it.
    """

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._told: dict[Instruction, list[Told]] = {}
        self._leaves: dict[Instruction, tuple[Dimensions, ...]] = {}

    def told(self, instruction: Instruction) -> list[Told]:
        """The parts of each leaf; None where there is no sharding. O(leaves · devices), once."""
        found = self._told.get(instruction)
        if found is None:
            found = self._told[instruction] = leaf_shards(instruction, self.partitions)
        return found

    def leaves(self, instruction: Instruction) -> tuple[Dimensions, ...]:
        """The dimensions of each leaf on one device."""
        found = self._leaves.get(instruction)
        if found is None:
            found = self._leaves[instruction] = tuple(
                told.part(leaf.dimensions) if isinstance(told, Shards) else leaf.dimensions
                for told, leaf in zip(
                    self.told(instruction), instruction.shape.leaves(), strict=True
                )
            )
        return found

    def element(self, tuple_value: Instruction, index: int) -> list[Told]:
        """The parts of the leaves of one element of a tuple."""
        elements = tuple_value.shape.elements
        start = sum(map(leaf_count, elements[:index]))
        return self.told(tuple_value)[start : start + leaf_count(elements[index])]


def agree(mine: Sequence[Told], others: Sequence[Told]) -> bool:
    """Whether every device has the same parts of both; what has no sharding is replicated."""
    return [*map(_meaning, mine)] == [*map(_meaning, others)]


def _meaning(told: Told) -> Told:
    return None if isinstance(told, Shards) and told.is_whole else told
