"""Sort the contracting dimensions of dots."""

from __future__ import annotations

from hloopt.ir.attributes.values import format_ints
from hloopt.ir.shapes.layout import default_layout
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import EDITED, Match, Missed, Result, RulePass, op, rule
from hloopt.passes.simplification.algsimp.reductions.dot_dimensions import dot_dimensions


@rule(op("dot", "a", "b"), floats="rounding", dynamic=True, moves_control=True)
def sort_contracting(match: Match) -> Result:
    """Sort the pairs of contracting dimensions by the side whose dimensions are neighbours."""
    dims = dot_dimensions(match.root)
    sides = [dims.left.contracting, dims.right.contracting]
    is_sorted = [list(side) == sorted(side) for side in sides]
    if not sides[0] or all(is_sorted):
        return None
    for operand in (match.a, match.b):
        order = operand.shape.layout.minor_to_major
        if order != default_layout(operand.shape.rank).minor_to_major:
            return Missed(f"%{operand.name} does not have the default layout")
    are_neighbours = [max(side) - min(side) == len(side) - 1 for side in sides]
    wanted = [near and not done for near, done in zip(are_neighbours, is_sorted, strict=True)]
    if not any(wanted):
        return Missed("the contracting dimensions of no unsorted side are neighbours")
    if not all(wanted) and all(are_neighbours):
        return Missed("sorting one side would take the other out of order")
    key = sides[wanted.index(True)]
    for name, side in zip(("lhs", "rhs"), sides, strict=True):
        ordered = [d for _, d in sorted(zip(key, side, strict=True))]
        match.root.set_attribute(f"{name}_contracting_dims", format_ints(ordered))
    return EDITED


@register(
    "dot-dimension-sorter",
    preserves="rounding",
    xla=XlaPass("DotDimensionSorter", "xla/backends/gpu/transforms/dot_dimension_sorter.h"),
)
class DotDimensionSorter(RulePass):
    """Sort the contracting dimensions of dots, so that a matrix product reads them in order.

    Pairs of left and right dimensions stay together. A dot is changed where the dimensions of one
    side are neighbours, but out of order, and those of the other are not neighbours, or are out of
    order as well; both operands have the default layout. Sums are taken in another order. Linear
    in the number of instructions.
    """

    rules = (sort_contracting,)
    max_sweeps = 1
