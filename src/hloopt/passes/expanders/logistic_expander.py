"""Write the logistic function as arithmetic."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import Match, RulePass, op, rule


@rule(op("logistic", "x"), floats="rounding", dynamic=True, moves_control=True)
def expand(match: Match) -> Instruction:
    """logistic(x) -> 1 / (1 + exp(-x))."""
    build, x = match.build, match.x
    ones = build.splat(1, x.shape)
    growth = build.unary("exponential", build.unary("negate", x))
    return build.divide(ones, build.add(ones, growth))


@register(
    "logistic-expander",
    preserves="rounding",
    xla=XlaPass("LogisticExpander", "xla/hlo/transforms/expanders/logistic_expander.h"),
)
class LogisticExpander(RulePass):
    """Replace `logistic(x)` by `1 / (1 + exp(-x))`.

    The ones are one broadcast of a constant of x's type, used twice; dynamic dimensions are kept.
    Results may differ in the last bits. Linear in the number of instructions.
    """

    rules = (expand,)
    max_sweeps = 1
