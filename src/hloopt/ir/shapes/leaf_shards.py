"""The part of each array of an instruction's value that each device has, as far as it is told."""

from __future__ import annotations

from typing import TypeAlias

from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.ir.attributes.values.replica_groups import Mesh
from hloopt.ir.attributes.values.shards import Shards, mesh_shards, shards_of
from hloopt.ir.attributes.values.shardy import (
    ShardySharding,
    parse_shardy_meshes,
    parse_shardy_shardings,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.shapes.leaf_annotations import leaf_shardings
from hloopt.ir.shapes.leaves import leaf_count

SHARDY = "xla.sdy.sharding"


Told: TypeAlias = "Shards | str | None"
"""The parts of an array; a text where there is a sharding that does not tell them, None where there
is none."""


def leaf_shards(instruction: Instruction, partitions: int) -> list[Told]:
    """The parts of each leaf, by `sharding=` or else by the frontend attribute of Shardy.

    O(leaves · devices). Raises HloSyntaxError.
    """
    shardings = leaf_shardings(instruction)
    if shardings is not None:
        return [
            shards_of(text, leaf.rank, partitions)
            for text, leaf in zip(shardings, instruction.shape.leaves(), strict=True)
        ]
    found: list[Told] = [
        mesh_shards(sharding.mesh, sharding.dimensions, partitions)
        for sharding in shardy_shardings(instruction) or ()
    ]
    return found or [None] * leaf_count(instruction.shape)


def shardy_shardings(instruction: Instruction) -> list[ShardySharding] | None:
    """The shardings in the frontend attribute of Shardy; None without one for each leaf."""
    text = frontend_attribute(instruction, SHARDY)
    if text is None:
        return None
    found = parse_shardy_shardings(text, shardy_meshes(instruction.parent.module))
    return found if len(found) == leaf_count(instruction.shape) else None


def shardy_meshes(module: Module) -> dict[str, Mesh]:
    """The meshes of Shardy in the header of a module, by name."""
    header = module.attributes.get("frontend_attributes")
    if header is None:
        return {}
    return parse_shardy_meshes(parse_frontend_attributes(header).get("xla.sdy.meshes", ""))
