"""Tags on the instructions of a program, read off the collectives that the partitioner makes of it.

A collective gets the metadata of the instruction that was visited when it was made: a partitioner
that runs on a program whose metadata are tags tells the origin of each.
"""

from __future__ import annotations

from collections.abc import Hashable

from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.ir.attributes.typed import channel_of
from hloopt.ir.clone import clone_module
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.shapes.shape import format_shape
from hloopt.ir.sources.source_stacks import op_name_of

_TAG = "hloopt:"


def tagged(before: Module) -> tuple[Module, dict[str, Instruction]]:
    """A copy of a program with a tag for metadata, and the instruction of each tag.

    O(instructions).
    """
    copy, computations = clone_module(before)
    tags: dict[str, Instruction] = {}
    for computation in before.computations.values():
        for instruction in computation.instructions:
            tag = f"{_TAG}{len(tags)}"
            tags[tag] = instruction
            own = computations[computation][instruction.name]
            own.set_attribute("metadata", f'{{op_name="{tag}"}}')
    return copy, tags


def origins_by_tag(
    made: Module, after: Module, tags: dict[str, Instruction]
) -> dict[Instruction, Instruction]:
    """The origins of collectives of `after` by those in `made`, the tagged program partitioned.

    Both are brought together in the order in which the partitioner numbered them, if there are as
    many of each kind and shape in that order; where not, nothing is said. O(collectives · log).
    """
    if not has_same_collectives(made, after):
        return {}
    return {
        own: tags[tag]
        for own, other in zip(_in_order(after), _in_order(made), strict=True)
        if (tag := op_name_of(other)) in tags
    }


def has_same_collectives(left: Module, right: Module) -> bool:
    """Whether two partitioned modules have collectives of the same kinds and shapes, in the order
    in which the partitioner numbered them. O(collectives · log)."""
    return [*map(_kind, _in_order(left))] == [*map(_kind, _in_order(right))]


def _in_order(module: Module) -> list[Instruction]:
    found = [collective.instruction for collective in collectives_of(module)]
    return sorted(found, key=lambda collective: channel_of(collective) or 0)


def _kind(collective: Instruction) -> Hashable:
    return collective.opcode, format_shape(collective.shape, layout=False)
