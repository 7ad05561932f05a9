"""Rules that move layouts of copies through bitcasts and reshapes, after layout assignment."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE, default_layout
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.rewriting.rules.pattern import op
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.rearranging.chains import reshape_is_bitcast
from hloopt.passes.simplification.algsimp.shapes import Group, common_factors

_NOT_PLAIN = Missed("a layout has more than an order, or the memory spaces differ")
_NOT_ALIKE = Missed("the layouts differ in more than their orders, or one is of host memory")


@rule(
    op("copy", op("bitcast", op("copy", "x").named("first")).named("bitcast")), layouts="sensitive"
)
def copy_bitcast_copy(m: AlgsimpMatch) -> Result:
    """copy(bitcast(copy(x))) → copy(bitcast(x)) in the layout that corresponds to that of x, or
    bitcast(copy(x)) where the layout of the outer copy has one that corresponds to it."""
    shapes = (m.x.shape, m.first.shape, m.bitcast.shape, m.root.shape)
    if not _are_tiled_alike(shapes):
        return _NOT_ALIKE
    groups = _in_memory(m.first.shape, m.bitcast.shape)
    if groups is None:
        return Missed(f"%{m.bitcast.name} does more than splitting or merging dimensions")
    order = _carried(groups, 0, m.x.shape)
    if order is not None:
        shape = _ordered(m.root.shape, order)
        if _keeps_tiles(groups, m.x.shape, shape):
            return m.build.make("copy", m.build.bitcast(m.x, shape), shape=m.root.shape)
    order = _carried(groups, 1, m.root.shape)
    if order is None or len(m.first.users) > 1 or len(m.bitcast.users) > 1:
        return None
    shape = _ordered(m.x.shape, order)
    if not _keeps_tiles(groups, shape, m.root.shape):
        return Missed("the tiles of the layouts do not go through the bitcast")
    return m.build.bitcast(m.build.make("copy", m.x, shape=shape), m.root.shape)


@rule(op("reshape", op("copy", "x").named("copy")), layouts="sensitive")
def reshape_of_copy(m: AlgsimpMatch) -> Result:
    """reshape(copy(x)) → copy(bitcast(x)) where the reshape moves elements in the layout of the
    copy, but need not in that of x."""
    if reshape_is_bitcast(m.options, m.copy.shape, m.root.shape):
        return None
    if not _are_plain((m.x.shape, m.copy.shape, m.root.shape)):
        return _NOT_PLAIN
    groups = common_factors(m.x.shape.dimensions, m.root.shape.dimensions)
    order = _carried(groups, 0, m.x.shape)
    if order is None:
        return None
    shape = _ordered(m.root.shape, order)
    if not reshape_is_bitcast(m.options, m.x.shape, shape):
        return None
    return m.build.make("copy", m.build.bitcast(m.x, shape), shape=m.root.shape)


@rule(op("copy", op("reshape", "x").one_use().named("reshape")), layouts="sensitive")
def copy_of_moving_reshape(m: AlgsimpMatch) -> Result:
    """copy(reshape(x)) → bitcast(copy(x)) where the reshape moves elements, but need not in the
    layout of the copy."""
    if reshape_is_bitcast(m.options, m.x.shape, m.reshape.shape):
        return None
    if not _are_plain((m.x.shape, m.reshape.shape, m.root.shape)):
        return _NOT_PLAIN
    groups = common_factors(m.x.shape.dimensions, m.reshape.shape.dimensions)
    order = _carried(groups, 1, m.root.shape)
    if order is None:
        return None
    shape = _ordered(m.x.shape, order)
    if not reshape_is_bitcast(m.options, shape, m.root.shape):
        return None
    return m.build.bitcast(m.build.make("copy", m.x, shape=shape), m.root.shape)


def _are_plain(shapes: Sequence[Shape]) -> bool:
    """Whether layouts are an order in one memory space, of static shapes with elements."""
    space = shapes[0].layout.memory_space
    return all(
        shape.is_array
        and not shape.is_dynamic
        and shape.element_count() > 0
        and shape.layout
        == default_layout(shape.rank)._replace(
            minor_to_major=shape.layout.minor_to_major, memory_space=space
        )
        for shape in shapes
    )


def _are_tiled_alike(shapes: Sequence[Shape]) -> bool:
    """Whether layouts differ in their orders only, outside host memory: static shapes with
    elements."""
    layouts = {shape.layout._replace(minor_to_major=()) for shape in shapes}
    return (
        len(layouts) == 1
        and layouts.pop().memory_space != HOST_MEMORY_SPACE
        and all(s.is_array and not s.is_dynamic and s.element_count() > 0 for s in shapes)
    )


def _keeps_tiles(groups: Sequence[Group], before: Shape, after: Shape) -> bool:
    """Whether tiles of equal sizes divide the same dimensions on both sides of a bitcast.

    Of a dimension that is split only the part that is most minor may be tiled, into whole tiles,
    and no dimension inside of it that is tiled may be another one.
    """
    if not before.layout.tiles:
        return True
    sizes = before.layout.tiles[0].strip("()").split(",")[::-1]
    sides = (before.layout.minor_to_major, after.layout.minor_to_major)
    if not all(map(str.isdecimal, sizes)):  # `*` makes one of two dimensions
        return False
    group_of = {dimension: group for group in groups for dimension in group.before}
    for place, (tile, old, new) in enumerate(zip(sizes, *sides, strict=False)):
        group = group_of[old]
        if len(group.before) == len(group.after):
            continue
        part = min(before.dimensions[old], after.dimensions[new])
        if place + 1 < len(sizes) or part % int(tile):
            return False
    return True


def _in_memory(before: Shape, after: Shape) -> list[Group] | None:
    """Groups of dimensions that a bitcast maps to each other, each from the most major one.

    None where a group is no dimension that is split, nor some that are merged, or element types
    differ.
    """
    if before.type_name != after.type_name:
        return None
    old, new = before.layout.minor_to_major[::-1], after.layout.minor_to_major[::-1]
    places = common_factors([before.dimensions[d] for d in old], [after.dimensions[d] for d in new])
    groups = [
        Group(tuple(old[n] for n in group.before), tuple(new[n] for n in group.after))
        for group in places
    ]
    return groups if all(1 in (len(g.before), len(g.after)) for g in groups) else None


def _carried(groups: Sequence[Group], side: int, shape: Shape) -> tuple[int, ...] | None:
    """The layout of the other side of a bitcast, minor to major, for a shape on one side.

    None where a group is apart there, in another order, or empty on a side.
    """
    if not all(group.before and group.after for group in groups):
        return None
    starts = {group[side][0]: group for group in groups}
    major = shape.layout.minor_to_major[::-1]
    order: list[int] = []
    place = 0
    while place < len(major):
        group = starts.get(major[place])
        if group is None or major[place : place + len(group[side])] != group[side]:
            return None
        order += group[1 - side]
        place += len(group[side])
    return tuple(reversed(order))


def _ordered(shape: Shape, minor_to_major: tuple[int, ...]) -> Shape:
    return shape.with_layout(shape.layout._replace(minor_to_major=minor_to_major))


COPY_RULES = (copy_bitcast_copy, copy_of_moving_reshape)
RESHAPE_RULES = (reshape_of_copy,)
