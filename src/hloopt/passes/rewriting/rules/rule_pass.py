"""A pass that is a list of rules: what a plug-in writes."""

from __future__ import annotations

from typing import ClassVar

from hloopt.analysis.calls import callees_first
from hloopt.ir.module import Module
from hloopt.pass_framework.base import ModulePass, PassContext
from hloopt.passes.rewriting.rules.engine import RuleEngine, Settings
from hloopt.passes.rewriting.rules.rule import Rule, RuleTable


class RulePass(ModulePass):
    """Base of passes that apply `rules` to all computations but fusions, until none applies."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    def run(self, module: Module, context: PassContext) -> bool:
        """Apply the rules; whether one applied. Linear in instructions and rewrites."""
        engine = RuleEngine(module, RuleTable(self.rules), context, Settings(options=self.options))
        changed = False
        for computation in callees_first(module):
            if not computation.is_fusion:
                changed = engine.run(computation) or changed
        return changed
