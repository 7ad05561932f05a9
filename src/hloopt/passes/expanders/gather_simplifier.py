"""Bring gathers into a form with a matrix of indices and no collapsed dimensions."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.expanders.indices import (
    index_sizes,
    ints,
    matrix_of_indices,
    places_of_windows,
    reshaped,
    resized,
    set_ints,
    transposed,
    vector_dimension,
)
from hloopt.passes.rewriting.rules import Match, Missed, Result, RulePass, op, rule


@rule(op("gather", "x", "indices"), moves_control=True)
def simplify(match: Match) -> Result:
    """gather(x, i) -> transpose(reshape(gather(x, matrix of i)))."""
    root, build, x, indices = match.root, match.build, match.x, match.indices
    if _is_simplified(root):
        return None
    sizes = ints(root, "slice_sizes")
    if 0 in sizes:
        return build.broadcast(build.scalar(0, x.shape), (), root.shape)
    if not sizes:
        return build.broadcast(x, (), root.shape)
    if ints(root, "operand_batching_dims"):
        return Missed("it has batching dimensions: batched-gather-scatter-normalizer removes them")
    vector = vector_dimension(root)
    matrix = matrix_of_indices(build, indices, vector)
    count = matrix.shape.dimensions[0]
    windows = build.clone(root, [x, matrix], resized(x.shape, (count, *sizes)))
    collapsed = ints(root, "collapsed_slice_dims")
    offsets = range(1, len(sizes) + 1)
    set_ints(windows, {"offset_dims": offsets, "collapsed_slice_dims": ()})
    windows.set_attribute("index_vector_dim", "1")
    kept = [size for d, size in enumerate(sizes) if d not in collapsed]
    result = reshaped(build, windows, (count, *kept))
    outer = index_sizes(indices.shape, vector)
    result = reshaped(build, result, (*outer, *kept))
    return transposed(build, result, places_of_windows(root, len(outer), len(kept)))


def _is_simplified(gather: Instruction) -> bool:
    operand, indices = gather.operands
    return (
        indices.shape.rank == 2
        and vector_dimension(gather) == 1
        and operand.shape.rank > 0
        and not ints(gather, "collapsed_slice_dims")
        and not ints(gather, "operand_batching_dims")
        and ints(gather, "offset_dims") == tuple(range(1, operand.shape.rank + 1))
    )


@register(
    "gather-simplifier",
    preserves="bits",
    xla=XlaPass("GatherSimplifier", "xla/hlo/transforms/simplifiers/gather_simplifier.h"),
)
class GatherSimplifier(RulePass):
    """Let gathers have a matrix of indices, and windows of all dimensions behind its rows.

    The index vector becomes the last of two dimensions; a reshape removes collapsed dimensions,
    another one makes of the rows what dimensions the indices had, and a transpose takes the window
    dimensions to their place; steps that do nothing are left out. Empty windows become a broadcast
    of 0, windows of a scalar one of it. Gathers with batching dimensions stay. Linear in the number
    of instructions.
    """

    rules = (simplify,)
    max_sweeps = 1
