"""Drop batch dimensions of size 1 from dots."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import Match, Missed, Result, RulePass, op, rule
from hloopt.passes.simplification.algsimp.reductions.dot_dimensions import (
    DotDimensions,
    Side,
    dot_dimensions,
    make_dot,
)


@rule(op("dot", "a", "b"), moves_control=True)
def drop_batch_of_one(match: Match) -> Result:
    """dot(a, b) -> reshape(dot(reshape(a), reshape(b))) without batch dimensions of size 1."""
    dims, sizes = dot_dimensions(match.root), match.a.shape.dimensions
    dropped = [d for d in dims.left.batch if sizes[d] == 1]
    if not dropped:
        return None
    ordered = tuple(range(len(dims.left.batch)))
    if dims.left.batch != ordered or dims.right.batch != ordered:
        return Missed("its batch dimensions are not the first ones, in order")
    if len(dims.left.contracting) != 1:
        return Missed("it does not have one contracting dimension")
    batch = tuple(range(len(ordered) - len(dropped)))
    operands, sides = [], []
    for operand, side in zip((match.a, match.b), dims.sides, strict=True):
        operands.append(_without(match, operand, dropped))
        sides.append(
            Side.of(operand.shape.rank - len(dropped), batch, (side.contracting[0] - len(dropped),))
        )
    (a, b), (left, right) = operands, sides
    dot = make_dot(match.build, match.root, a, b, DotDimensions(left, right))
    return match.build.reshape(dot, match.root.shape)


def _without(match: Match, operand: Instruction, dropped: list[int]) -> Instruction:
    sizes = [s for d, s in enumerate(operand.shape.dimensions) if d not in dropped]
    return match.build.reshape(operand, sizes)


@register(
    "batch-dot-simplification",
    preserves="rounding",
    xla=XlaPass(
        "BatchDotSimplification", "xla/hlo/transforms/simplifiers/batch_dot_simplification.h"
    ),
)
class BatchDotSimplification(RulePass):
    """Drop batch dimensions of size 1 from dots: reshape the operands, and the result back.

    The batch dimensions of both operands are the first ones in order, and one dimension is
    contracted. Linear in the number of instructions.
    """

    rules = (drop_batch_of_one,)
    max_sweeps = 1
