"""The part of its parameters and results that each device has, as far as the text tells."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.leaf_shards import Told, leaf_shards


def parameter_shards(parameter: Instruction, partitions: int) -> list[Told]:
    """For each array of a parameter."""
    return leaf_shards(parameter, partitions)


def result_shards(module: Module, partitions: int) -> list[Told]:
    """For each array of the result of a module.

    They are those of the root, or of what the root makes a tuple of.
    """
    root = module.entry.root
    found = leaf_shards(root, partitions)
    if root.opcode is not Opcode.TUPLE:
        return found
    elements = [shards for o in root.operands for shards in leaf_shards(o, partitions)]
    return [own or element for own, element in zip(found, elements, strict=True)]
