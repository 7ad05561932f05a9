"""Rewrite rules: patterns of HLO, builders of what replaces them, and the engine that applies both.

A pass of rules is a class with a list of them:

    @rule(op("multiply", "x", splat(2), any_order=True))
    def double(match: Match) -> Instruction:
        \"\"\"2 * x -> x + x.\"\"\"
        return match.build.add(match.x, match.x)


    @register_pass("my-rules")
    class MyRules(RulePass):
        \"\"\"Rules of our own.\"\"\"
        rules = (double,)
"""

from __future__ import annotations

from hloopt.passes.rewriting.rules.build import Builder as Builder
from hloopt.passes.rewriting.rules.pattern import Pattern as Pattern
from hloopt.passes.rewriting.rules.pattern import broadcast_of_scalar as broadcast_of_scalar
from hloopt.passes.rewriting.rules.pattern import constant as constant
from hloopt.passes.rewriting.rules.pattern import either as either
from hloopt.passes.rewriting.rules.pattern import op as op
from hloopt.passes.rewriting.rules.pattern import scalar_constant as scalar_constant
from hloopt.passes.rewriting.rules.pattern import splat as splat
from hloopt.passes.rewriting.rules.pattern import value as value
from hloopt.passes.rewriting.rules.rule import EDITED as EDITED
from hloopt.passes.rewriting.rules.rule import Match as Match
from hloopt.passes.rewriting.rules.rule import Missed as Missed
from hloopt.passes.rewriting.rules.rule import Result as Result
from hloopt.passes.rewriting.rules.rule import Rule as Rule
from hloopt.passes.rewriting.rules.rule import rule as rule
from hloopt.passes.rewriting.rules.rule_pass import RulePass as RulePass
