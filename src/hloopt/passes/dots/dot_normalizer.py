"""Give dots without contracting dimensions one of size 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import array_shape
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.rewriting.rules import EDITED, Match, Missed, Result, RulePass, op, rule
from hloopt.passes.simplification.algsimp.reductions.dot_dimensions import dot_dimensions


@rule(op("dot", "a", "b"), dynamic=True, moves_control=True)
def contract_one(match: Match) -> Result:
    """dot(a, b) without contracting dimensions -> dot over a new last dimension of size 1."""
    if dot_dimensions(match.root).left.contracting:
        return None
    extra = match.options.extra_filter
    if extra is not None and not extra(match.root):
        return Missed("extra_filter leaves it out")
    for number, name in enumerate(("lhs", "rhs")):
        operand = match.root.operands[number]
        shape = operand.shape
        order = (shape.rank, *shape.layout.minor_to_major)
        appended = array_shape(
            shape.type_name,
            (*shape.dimensions, 1),
            dynamic=(*shape.dynamic, False),
            layout=shape.layout._replace(minor_to_major=order),
        )
        match.root.replace_operand(number, match.build.bitcast(operand, appended))
        match.root.set_attribute(f"{name}_contracting_dims", f"{{{shape.rank}}}")
    return EDITED


@register(
    "dot-normalizer",
    preserves="bits",
    xla=XlaPass("DotNormalizer", "xla/backends/gpu/transforms/dot_normalizer.h"),
)
class DotNormalizer(RulePass):
    """Let every dot contract a dimension: one without gets a last dimension of size 1.

    Bitcasts append it to both operands as the minor-most one. Linear in the number of instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        extra_filter: Callable[[Instruction], bool] | None = option(None, "which dots may change")

    options: Options
    rules = (contract_one,)
    max_sweeps = 1
