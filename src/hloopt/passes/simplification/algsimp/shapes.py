"""Dimensions of reshapes and transposes: which survive, which are only ones, what moves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape


class Group(NamedTuple):
    """Runs of dimensions before and after a reshape that hold the same elements."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def common_factors(before: Sequence[int], after: Sequence[int]) -> list[Group]:
    """The finest groups of dimensions with equal products, in order. O(ranks).

    Both shapes have the same number of elements, which is not 0. Dimensions of size 1 join the
    group in front of them, or stand in one of their own at the beginning.
    """
    groups: list[Group] = []
    i = j = 0
    while i < len(before) or j < len(after):
        start_i, start_j = i, j
        x = y = 1
        if i < len(before):
            x, i = before[i], i + 1
        if j < len(after):
            y, j = after[j], j + 1
        while x != y:
            if x < y and i < len(before):
                x, i = x * before[i], i + 1
            elif j < len(after):
                y, j = y * after[j], j + 1
            else:
                x, i = x * before[i], i + 1
        groups.append(Group(tuple(range(start_i, i)), tuple(range(start_j, j))))
    return groups


def unmodified(before: Sequence[int], after: Sequence[int]) -> dict[int, int]:
    """Dimensions that a reshape maps to one dimension of the same size, with that dimension.

    Ones do not count as boundaries: they are left out of both sides first. O(ranks).
    """
    if prod(before) != prod(after) or not prod(before):
        return {}
    old = [d for d, size in enumerate(before) if size != 1]
    new = [d for d, size in enumerate(after) if size != 1]
    groups = common_factors([before[d] for d in old], [after[d] for d in new])
    return {
        old[group.before[0]]: new[group.after[0]]
        for group in groups
        if len(group.before) == len(group.after) == 1
    }


def without_ones(sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes that are not 1."""
    return tuple(size for size in sizes if size != 1)


def kept_by_ones(before: Sequence[int], after: Sequence[int]) -> dict[int, int] | None:
    """For a reshape that only inserts or deletes ones: old to new dimension, except for those.

    None for another reshape. Ones that stand at corresponding places are mapped, too.
    """
    if without_ones(before) != without_ones(after):
        return None
    kept: dict[int, int] = {}
    j = 0
    for i, size in enumerate(before):
        if size == 1:
            if j < len(after) and after[j] == 1:
                kept[i] = j
                j += 1
            continue
        while after[j] == 1:
            j += 1
        kept[i] = j
        j += 1
    return kept


def only_inserts_ones(before: Sequence[int], after: Sequence[int]) -> dict[int, int] | None:
    """For a reshape that only inserts ones: old to new dimension for all old ones; else None."""
    kept: dict[int, int] = {}
    j = 0
    for i, size in enumerate(before):
        while j < len(after) and after[j] != size:
            if after[j] != 1:
                return None
            j += 1
        if j == len(after):
            return None
        kept[i] = j
        j += 1
    return kept if all(size == 1 for size in after[j:]) else None


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes another."""
    result = [0] * len(order)
    for new, old in enumerate(order):
        result[old] = new
    return tuple(result)


def is_identity(order: Iterable[int]) -> bool:
    return all(d == position for position, d in enumerate(order))


def is_sorted(dimensions: Sequence[int]) -> bool:
    return all(a < b for a, b in itertools.pairwise(dimensions))


def is_effective_scalar(shape: Shape) -> bool:
    """Whether an array has one element."""
    return shape.is_array and all(size == 1 for size in shape.dimensions)


def transpose_moves_only_ones(transpose: Instruction) -> bool:
    """Whether the dimensions that are not 1 keep their order."""
    sizes = transpose.operands[0].shape.dimensions
    return is_sorted([d for d in dimensions_of(transpose) if sizes[d] != 1])


def has_zero(shape: Shape) -> bool:
    """Whether an array has no element."""
    return shape.is_array and 0 in shape.dimensions


# -- memory ---------------------------------------------------------------------------------------


def is_bitcast(before: Shape, after: Shape) -> bool:
    """Whether a reshape between two shapes with layouts moves nothing in memory.

    Element types agree, and so does all of the layouts but the order: tiles only in equal shapes.
    O(ranks).
    """
    if before is after:
        return True
    if before.type_name != after.type_name or before.is_dynamic or after.is_dynamic:
        return False
    a, b = before.layout, after.layout
    if a.tiles == b.tiles and before.element_count() == after.element_count() == 1:
        return a._replace(minor_to_major=()) == b._replace(minor_to_major=())
    plain = ((), 1, "", "", "")
    if (a.tiles, a.tail_padding, a.index_type, a.pointer_type, a.splits) != plain:
        return False
    if (b.tiles, b.tail_padding, b.index_type, b.pointer_type, b.splits) != plain:
        return False
    if a.element_bits != b.element_bits or a.memory_space != b.memory_space:
        return False
    if before.element_count() != after.element_count():
        return False
    if not before.element_count():
        return True
    return _order_in_memory(before, after) is not None


def _order_in_memory(before: Shape, after: Shape) -> list[int] | None:
    """The groups of both shapes from the most major to the most minor, if they agree."""
    old = [d for d, size in enumerate(before.dimensions) if size != 1]
    new = [d for d, size in enumerate(after.dimensions) if size != 1]
    groups = common_factors([before.dimensions[d] for d in old], [after.dimensions[d] for d in new])
    orders = []
    for shape, kept, side in ((before, old, 0), (after, new, 1)):
        group_of = {kept[p]: n for n, g in enumerate(groups) for p in g[side]}
        major = [d for d in reversed(shape.layout.minor_to_major) if d in group_of]
        order = _grouped(major, group_of)
        if order is None:
            return None
        orders.append(order)
    return orders[0] if orders[0] == orders[1] else None


def _grouped(major_to_minor: Sequence[int], group_of: dict[int, int]) -> list[int] | None:
    """The groups in memory, if each is contiguous and in its logical order."""
    order: list[int] = []
    last = -1
    for dimension in major_to_minor:
        group = group_of[dimension]
        if order and order[-1] == group:
            if dimension < last:
                return None
        elif group in order:
            return None
        else:
            order.append(group)
        last = dimension
    return order


def order_of_bitcast(before: Shape, after: Shape) -> tuple[int, ...] | None:
    """The dimension that each one of a bitcast was, where it only reorders them; else None."""
    a, b = before.layout, after.layout
    if before.rank != after.rank or a._replace(minor_to_major=()) != b._replace(minor_to_major=()):
        return None
    order = [0] * after.rank
    for old, new in zip(a.minor_to_major, b.minor_to_major, strict=True):
        if before.dimensions[old] != after.dimensions[new]:
            return None
        order[new] = old
    return tuple(order)


def transpose_is_bitcast(before: Shape, after: Shape, order: Sequence[int]) -> bool:
    """Whether a transpose between two shapes with layouts moves nothing in memory."""
    a, b = before.layout, after.layout
    if a._replace(minor_to_major=()) != b._replace(minor_to_major=()) or a.tiles:
        return False
    sizes = before.dimensions
    old = [d for d in a.minor_to_major if sizes[d] != 1]
    new = [order[d] for d in b.minor_to_major if sizes[order[d]] != 1]
    return old == new
