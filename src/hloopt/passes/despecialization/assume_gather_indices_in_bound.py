"""Forget what front ends promised of indices."""

from __future__ import annotations

from hloopt.ir.custom_targets import custom_call_target
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import Match, Missed, Result, RulePass, op, rule

_PROMISES = frozenset(("AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked"))


@rule(op("custom-call"), dynamic=True, moves_control=True)
def promise_to_copy(match: Match) -> Result:
    """custom-call that gives its operand back, with a promise about it -> copy."""
    root = match.root
    if custom_call_target(root) not in _PROMISES:
        return None
    if len(root.operands) != 1 or root.operands[0].shape is not root.shape:
        return Missed("it does not have one operand of its own shape")
    return match.build.make("copy", root.operands[0], shape=root.shape)


@register(
    "assume-gather-indices-in-bound-rewrite-to-copy",
    preserves="bits",
    xla=XlaPass(
        "AssumeGatherIndicesInBoundRewriteToCopy",
        "xla/hlo/transforms/despecializer.h",
        compared="nothing",
    ),
)
class AssumeGatherIndicesInBoundRewriteToCopy(RulePass):
    """Make copies of AssumeGatherIndicesInBound and GatherScatterIndicesBitpacked.

    These custom calls give their operand back. Linear in the size of the module.
    """

    rules = (promise_to_copy,)
