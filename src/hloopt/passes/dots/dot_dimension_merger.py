"""Make one batch dimension of several."""

from __future__ import annotations

from math import prod

from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import Match, Missed, Result, RulePass, op, rule
from hloopt.passes.simplification.algsimp.reductions.dot_dimensions import (
    DotDimensions,
    Side,
    dot_dimensions,
    make_dot,
)


@rule(op("dot", "a", "b"), moves_control=True)
def merge_batch(match: Match) -> Result:
    """dot(a, b) -> reshape(dot(reshape(a), reshape(b))) with one batch dimension for several."""
    dims = dot_dimensions(match.root)
    count = len(dims.left.batch)
    if count < 2:
        return None
    for operand, side in zip((match.a, match.b), dims.sides, strict=True):
        if reason := _why_not(operand, side.batch):
            return Missed(reason)
    operands, sides = [], []
    for operand, side in zip((match.a, match.b), dims.sides, strict=True):
        first = side.batch[0]
        shape = _merged(operand.shape, first, count)
        contracting = [d if d < first else d - count + 1 for d in side.contracting]
        operands.append(match.build.reshape(operand, shape))
        sides.append(Side.of(shape.rank, (first,), contracting))
    (a, b), (left, right) = operands, sides
    shape = _merged(match.root.shape, 0, count)
    dot = make_dot(match.build, match.root, a, b, DotDimensions(left, right), shape=shape)
    return match.build.reshape(dot, match.root.shape)


def _why_not(operand: Instruction, batch: tuple[int, ...]) -> str | None:
    """The reason why the batch dimensions of an operand are not one, or None where they are."""
    first, count = batch[0], len(batch)
    if batch != tuple(range(first, first + count)):
        return f"the batch dimensions of %{operand.name} are not neighbours in order"
    places = [operand.shape.layout.minor_to_major.index(d) for d in batch]
    if max(places) - min(places) >= count:
        return f"the batch dimensions of %{operand.name} are not neighbours in memory"
    return None


def _merged(shape: Shape, first: int, count: int) -> Shape:
    """A shape with `count` dimensions from `first` on made one."""
    end = first + count
    sizes = shape.dimensions
    order = [
        d if d <= first else d - count + 1
        for d in shape.layout.minor_to_major
        if not first < d < end
    ]
    return array_shape(
        shape.type_name,
        (*sizes[:first], prod(sizes[first:end]), *sizes[end:]),
        layout=shape.layout._replace(minor_to_major=tuple(order)),
    )


@register(
    "dot-dimension-merger",
    preserves="rounding",
    xla=XlaPass("DotDimensionMerger", "xla/hlo/transforms/simplifiers/dot_dimension_merger.h"),
)
class DotDimensionMerger(RulePass):
    """Make one batch dimension of several: reshape the operands, and the result back.

    In both operands the batch dimensions are neighbours, in order by number and, as in XLA, in any
    order in memory. Layouts are kept as far as they go. Linear in the number of instructions.
    """

    rules = (merge_batch,)
    max_sweeps = 1
