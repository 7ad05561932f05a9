"""Reduce and broadcast instead of windows that see all of a dimension."""

from __future__ import annotations

from hloopt.ir.attributes.typed import window_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import compatible
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import Match, Result, RulePass, op, rule


def whole_dimension(reduction: Instruction) -> int | None:
    """The dimension that each window of a reduce-window sees in full, and no other; None without.

    The window has the size 2n - 1 and a padding of n - 1 on both sides in it, where n is the size
    of the dimension, and nothing but the size 1 in the others.
    """
    rows = window_of(reduction).dimensions
    sizes = reduction.operands[0].shape.dimensions
    if any(r.stride != 1 or r.lhs_dilate != 1 or r.rhs_dilate != 1 or r.reversal for r in rows):
        return None
    wide = [d for d, r in enumerate(rows) if r.size != 1]
    if len(wide) != 1 or any(r.pad_low or r.pad_high for r in rows if r.size == 1):
        return None
    (dimension,) = wide
    row, size = rows[dimension], sizes[dimension]
    is_whole = row.size == 2 * size - 1 and row.pad_low == row.pad_high == size - 1
    return dimension if is_whole else None


@rule(op("reduce-window", "x", "init"), floats="rounding")
def reduce_and_broadcast(match: Match) -> Result:
    """reduce-window with windows that see a whole dimension -> broadcast(reduce).

    Every window sees the same elements, and what is read beyond the edges counts for nothing.
    """
    root, x = match.root, match.x
    if not root.shape.is_array or not compatible(root.shape, x.shape):
        return None
    dimension = whole_dimension(root)
    if dimension is None:
        return None
    reduced = match.build.reduce(x, match.init, [dimension], root.called[0])
    others = [d for d in range(x.shape.rank) if d != dimension]
    return match.build.broadcast(reduced, others, root.shape)


@register(
    "reduce-window-to-reduce-and-broadcast",
    preserves="rounding",
    xla=XlaPass(
        "ReduceWindowToReduceAndBroadcast", "xla/hlo/transforms/despecializer.h", compared="tests"
    ),
)
class ReduceWindowToReduceAndBroadcast(RulePass):
    """Reduce a dimension once where each window of a reduce-window sees all of it.

    The window has the size 2n - 1, a padding of n - 1 on both sides, and no strides, dilations or
    reversal; other dimensions have windows of size 1. Linear in the size of the module.
    """

    rules = (reduce_and_broadcast,)
