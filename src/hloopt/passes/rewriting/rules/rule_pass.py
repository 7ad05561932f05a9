"""A pass that is a list of rules: what a plug-in writes."""

from __future__ import annotations

from typing import ClassVar

from hloopt.ir.module import Module
from hloopt.pass_framework.base import ModulePass, PassContext
from hloopt.passes.rewriting.rules.engine import MOST_SWEEPS, RuleEngine, Settings
from hloopt.passes.rewriting.rules.rule import Rule, RuleTable


class RulePass(ModulePass):
    """Base of passes that apply `rules` to all computations but fusions, until none applies."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    max_sweeps: ClassVar[int] = MOST_SWEEPS
    """1: each instruction is visited once, and what rules make is left as it is."""

    def run(self, module: Module, context: PassContext) -> bool:
        """Apply the rules; whether one applied. Linear in instructions and rewrites."""
        settings = Settings(options=self.options, max_sweeps=self.max_sweeps)
        engine = RuleEngine(module, RuleTable(self._chosen()), context, settings)
        return engine.run_all()

    def _chosen(self) -> list[Rule]:
        """The rules whose option, if they have one, is on."""
        return [r for r in self.rules if r.option is None or getattr(self.options, r.option)]
