"""Convert what dots and convolutions take to the type of what they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.ir.instruction import Instruction
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.precision.operand_types import inferred_type, is_higher
from hloopt.passes.rewriting.rules import EDITED, Match, Missed, Result, RulePass, op, rule


@rule(op(("dot", "convolution"), "a", "b"), floats="precision", dynamic=True, moves_control=True)
def convert_operands(match: Match) -> Result:
    """op(a, b) -> op(convert(a), convert(b)), where the result has the higher precision."""
    root = match.root
    if not all(operand.shape.is_array for operand in root.operands):
        return None  # sparse, with metadata beside the values
    wanted, types = root.shape.type_name, [o.shape.type_name for o in (match.a, match.b)]
    inferred = inferred_type(root)
    if types == [wanted, wanted] and inferred == wanted:
        return None
    if inferred != wanted and not is_higher(wanted, inferred):
        return Missed(f"its operands give {inferred}, which has a higher precision than {wanted}")
    extra = match.options.extra_filter
    if extra is not None and not extra(root):
        return Missed("extra_filter leaves it out")
    for number, operand in enumerate((match.a, match.b)):
        if operand.shape.type_name != wanted:
            root.replace_operand(number, match.build.convert(operand, wanted))
    return EDITED


@register(
    "operand-upcaster",
    preserves="precision",
    xla=XlaPass("OperandUpcaster", "xla/hlo/transforms/operand_upcaster.h"),
)
class OperandUpcaster(RulePass):
    """Let dots and convolutions take operands of the element type of their result.

    Where that is the type that the operands give, or one of higher precision, each operand of
    another type is converted to it. Linear in the number of instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        extra_filter: Callable[[Instruction], bool] | None = option(
            None, "which dots and convolutions may change"
        )

    options: Options
    rules = (convert_operands,)
    max_sweeps = 1
