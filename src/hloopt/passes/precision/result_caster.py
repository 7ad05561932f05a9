"""Let dots and convolutions compute in the type that their operands give, and convert that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.ir.instruction import Instruction
from hloopt.ir.shape_inference.element_types import with_type
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.precision.operand_types import inferred_type, is_higher
from hloopt.passes.rewriting.rules import Match, Missed, Result, RulePass, op, rule


@rule(op(("dot", "convolution"), "a", "b"), floats="precision", dynamic=True, moves_control=True)
def convert_result(match: Match) -> Result:
    """op(a, b) -> convert(op(a, b)), where the operands give a type of higher precision."""
    root = match.root
    stated, inferred = root.shape.type_name, inferred_type(root)
    if not is_higher(inferred, stated):
        return None
    extra = match.options.extra_filter
    if extra is not None and not extra(root):
        return Missed("extra_filter leaves it out")
    made = match.build.clone(root, root.operands, with_type(root.shape, inferred))
    return match.build.make("convert", made, shape=root.shape)


@register(
    "result-caster",
    preserves="precision",
    xla=XlaPass("ResultCaster", "xla/hlo/transforms/simplifiers/result_caster.h"),
)
class ResultCaster(RulePass):
    """Let dots and convolutions give the element type of their operands, and convert the result.

    That is done where the type that the operands give has a higher precision than the stated one:
    `s32 dot(bf16, bf16)` becomes `s32 convert(bf16 dot(bf16, bf16))`. Linear in the number of
    instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        extra_filter: Callable[[Instruction], bool] | None = option(
            None, "which dots and convolutions may change"
        )

    options: Options
    rules = (convert_result,)
    max_sweeps = 1
