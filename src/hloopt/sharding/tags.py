"""Tags on the instructions of a program, read off the collectives that the partitioner makes of it.

A collective gets the metadata of the instruction that was visited when it was made: a partitioner
that runs on a program whose metadata are tags tells the origin of each. It may see another program:
HLO goes to jaxlib as StableHLO, which changes some instructions, and the order of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.ir.attributes.typed import channel_of
from hloopt.ir.clone import clone_module
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.shapes.shape import format_shape
from hloopt.ir.sources.source_stacks import op_name_of

if TYPE_CHECKING:
    from hloopt.sharding.explain import Explanation

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

    Both have the same collectives (`has_same_collectives`), and are brought together in the order
    in which the partitioner numbered them. O(collectives · log).
    """
    return {
        own: tags[tag]
        for own, other in zip(_in_order(after), _in_order(made), strict=True)
        if (tag := op_name_of(other)) in tags
    }


def told_origins(
    made: Module, after: Module, found: Iterable[Explanation], tags: dict[str, Instruction]
) -> dict[Instruction, Instruction]:
    """The origins of collectives of `after` that a program tells which went through StableHLO.

    That has no get-tuple-elements: a tag of what makes a tuple tells as much as the texts, which
    have `found` origins, say, too. O(collectives · log).
    """
    known = agreed_origins(made, found, tags)
    if has_same_collectives(made, after):
        in_order = origins_by_tag(made, after, tags)
        known.update((c, origin) for c, origin in in_order.items() if not origin.shape.is_tuple)
    return known


def agreed_origins(
    made: Module, found: Iterable[Explanation], tags: dict[str, Instruction]
) -> dict[Instruction, Instruction]:
    """The origins of which the texts and the tags of `made` say the same, though `made` has other
    collectives or another order than the module that is explained.

    Those are the collectives of one kind and size of which the tags name an origin as often as the
    texts do. O(collectives).
    """
    told = Counter((_size(other), tags.get(op_name_of(other))) for other in _in_order(made))
    groups: dict[tuple[Hashable, Instruction | None], list[Explanation]] = {}
    for each in found:
        groups.setdefault((_size(each.collective.instruction), each.origin), []).append(each)
    return {
        each.collective.instruction: each.origin
        for key, group in groups.items()
        if len(group) == told[key]
        for each in group
        if each.origin is not None
    }


def has_same_collectives(left: Module, right: Module) -> bool:
    """Whether two partitioned modules have collectives of the same kinds and shapes, in the order
    in which the partitioner numbered them. O(collectives · log)."""
    return [*map(_kind, _in_order(left))] == [*map(_kind, _in_order(right))]


def _in_order(module: Module) -> list[Instruction]:
    found = [collective.instruction for collective in collectives_of(module)]
    return sorted(found, key=lambda collective: channel_of(collective) or 0)


def _size(collective: Instruction) -> Hashable:
    """Its kind, and the shape of its value but for the order of dimensions, and those of one."""
    leaves = collective.shape.leaves()
    sizes = tuple(
        (leaf.type_name, *sorted(d for d in leaf.dimensions if d != 1)) for leaf in leaves
    )
    return collective.opcode, sizes


def _kind(collective: Instruction) -> Hashable:
    return collective.opcode, format_shape(collective.shape, layout=False)
