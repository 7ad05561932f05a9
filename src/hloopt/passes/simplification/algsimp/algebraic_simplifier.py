"""Replace operations by equal ones that cost less: XLA's algebraic simplifier."""

from __future__ import annotations

from hloopt.ir.module import Module
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.rules.engine import MOST_SWEEPS, RuleEngine, Settings
from hloopt.passes.simplification.algsimp.options import (
    OPTION_GROUPS,
    AlgsimpMatch,
    AlgsimpOptions,
)
from hloopt.passes.simplification.algsimp.table import table_for


@register(
    "algsimp",
    preserves="finite",
    xla=XlaPass("AlgebraicSimplifier", "xla/hlo/transforms/simplifiers/algebraic_simplifier.h"),
)
class AlgebraicSimplifier(ModulePass):
    """Simplify arithmetic and rearrangements by a table of rules, until none applies.

    Computations that are no fusions are visited callees first, instructions operands first; of the
    rules for an opcode the first that applies is taken. After the first sweep only the neighbours
    of changes are visited again, at most 50 times. A rule whose instruction has control
    dependencies makes nothing new there. `preserve` leaves out rules that may change special
    values (`rounding`) or rounding, too (`bits`); `disable_rules` leaves out rules by name, and
    statistics count how often each rule was applied. Linear in the size of the module and the
    number of rewrites.
    """

    Options = AlgsimpOptions
    options: AlgsimpOptions
    option_groups = OPTION_GROUPS

    def __init__(self, options: AlgsimpOptions | None = None) -> None:
        super().__init__(options)
        self.preserves = self.options.preserve
        self._table = table_for(self.options)

    def run(self, module: Module, context: PassContext) -> bool:
        options = self.options
        settings = Settings(
            options=options,
            layout_sensitive=options.is_layout_sensitive,
            preserve=options.preserve,
            max_sweeps=MOST_SWEEPS if options.run_to_fixed_point else 1,
            match_class=AlgsimpMatch,
        )
        engine = RuleEngine(module, self._table, context, settings)
        return engine.run_all()
