"""Layouts on the other side of a bitcast or reshape that only renames dimensions."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import Layout
from hloopt.ir.shapes.shape import Shape


def renamed(layout: Layout, renaming: Instruction) -> Layout | None:
    """The layout of a bitcast or reshape whose operand has `layout`, where it moves nothing then.

    None where it does more than to permute dimensions and to add and drop those of size 1: where
    that layout gave other values, or tiles of other parts. O(rank).
    """
    source, result = renaming.operands[0].shape, renaming.shape
    dimensions = _dimensions(renaming)
    if dimensions is None:
        return None
    order = [dimensions[d] for d in layout.minor_to_major if d in dimensions]
    ones = [d for d in reversed(range(result.rank)) if result.dimensions[d] == 1]
    new = layout._replace(minor_to_major=(*order, *ones))
    if layout.tiles and _sizes_in_memory(source, layout) != _sizes_in_memory(result, new):
        return None
    return new


def _dimensions(renaming: Instruction) -> dict[int, int] | None:
    """The dimension that each one of another size than 1 becomes; None where values move."""
    shapes = (renaming.operands[0].shape, renaming.shape)
    first, second = (shape.element_type for shape in shapes)
    if first is None or second is None or first.bits != second.bits:
        return None
    ours, theirs = ([d for d in _order(renaming, s) if s.dimensions[d] != 1] for s in shapes)
    if [shapes[0].dimensions[d] for d in ours] != [shapes[1].dimensions[d] for d in theirs]:
        return None
    return dict(zip(ours, theirs, strict=True))


def _order(renaming: Instruction, shape: Shape) -> tuple[int, ...]:
    """The dimensions of an array in the order that a bitcast, or a reshape, counts elements in."""
    if renaming.opcode is Opcode.BITCAST:
        return shape.layout.minor_to_major
    return tuple(range(shape.rank))


def _sizes_in_memory(shape: Shape, layout: Layout) -> list[int]:
    """The sizes from the minor to the major dimension, without the major ones of size 1."""
    sizes = [shape.dimensions[d] for d in layout.minor_to_major]
    while sizes and sizes[-1] == 1:
        sizes.pop()
    return sizes
