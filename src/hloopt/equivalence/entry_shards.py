"""The part of its parameters and results that each device has, as far as the text tells."""

from __future__ import annotations

from typing import TypeAlias

from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.ir.attributes.values.shards import Shards, mesh_shards, shards_of
from hloopt.ir.attributes.values.shardy import parse_shardy_meshes, parse_shardy_shardings
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.leaf_annotations import leaf_shardings
from hloopt.ir.shapes.leaves import leaf_count

_SHARDY = "xla.sdy.sharding"


Told: TypeAlias = "Shards | str | None"
"""The parts of an array; a text where there is a sharding that does not tell them, None where there
is none."""


def parameter_shards(parameter: Instruction, partitions: int) -> list[Told]:
    """For each array of a parameter."""
    return _annotated(parameter, partitions)


def result_shards(module: Module, partitions: int) -> list[Told]:
    """For each array of the result of a module.

    They are those of the root, or of what the root makes a tuple of.
    """
    root = module.entry.root
    found = _annotated(root, partitions)
    if root.opcode is not Opcode.TUPLE:
        return found
    elements = [shards for o in root.operands for shards in _annotated(o, partitions)]
    return [own or element for own, element in zip(found, elements, strict=True)]


def _annotated(instruction: Instruction, partitions: int) -> list[Told]:
    leaves = instruction.shape.leaves()
    shardings = leaf_shardings(instruction)
    if shardings is not None:
        return [
            shards_of(text, leaf.rank, partitions)
            for text, leaf in zip(shardings, leaves, strict=True)
        ]
    return _of_shardy(instruction, partitions) or [None] * leaf_count(instruction.shape)


def _of_shardy(instruction: Instruction, partitions: int) -> list[Told]:
    text = frontend_attribute(instruction, _SHARDY)
    if text is None:
        return []
    header = instruction.parent.module.attributes.get("frontend_attributes", "{}")
    meshes = parse_shardy_meshes(parse_frontend_attributes(header).get("xla.sdy.meshes", ""))
    found = [
        mesh_shards(sharding.mesh, sharding.dimensions, partitions)
        for sharding in parse_shardy_shardings(text, meshes)
    ]
    return [*found] if len(found) == leaf_count(instruction.shape) else []
