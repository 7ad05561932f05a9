"""Let broadcasts have their dimensions in ascending order."""

from __future__ import annotations

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import array_shape
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import Match, RulePass, op, rule


@rule(op("broadcast", "x"), dynamic=True, moves_control=True)
def sort_dimensions(match: Match) -> Instruction | None:
    """broadcast(x) -> broadcast(transpose(x)), whose dimensions are in order."""
    dimensions, shape = dimensions_of(match.root), match.x.shape
    if list(dimensions) == sorted(dimensions):
        return None
    order = sorted(range(shape.rank), key=dimensions.__getitem__)
    transposed = array_shape(
        shape.type_name,
        tuple([shape.dimensions[d] for d in order]),
        dynamic=tuple([shape.dynamic[d] for d in order]),
        layout=shape.layout,
    )
    transpose = match.build.transpose(match.x, order, transposed)
    return match.build.broadcast(transpose, sorted(dimensions), match.root.shape)


@register(
    "broadcast-canonicalizer",
    preserves="bits",
    xla=XlaPass(
        "BroadcastCanonicalizer", "xla/hlo/transforms/simplifiers/broadcast_canonicalizer.h"
    ),
)
class BroadcastCanonicalizer(RulePass):
    """Transpose the operand of each broadcast whose dimensions are not in ascending order.

    The transposed operand has the layout of the operand, as XLA's has. Linear in the number of
    instructions.
    """

    rules = (sort_dimensions,)
    max_sweeps = 1
