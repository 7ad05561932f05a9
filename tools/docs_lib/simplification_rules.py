"""The page that lists the rules of the algebraic simplifier."""

from __future__ import annotations

from docs_lib.pass_pages import cell, table
from hloopt.passes.rewriting.rules.rule import Rule
from hloopt.passes.simplification.algsimp.table import RULES

_LAYOUTS = {"any": "", "insensitive": "before layouts", "sensitive": "with layouts"}


def simplification_rules_page(note: str) -> str:
    """All rules in the order in which they are tried."""
    rows = [
        (f"`{rule.name}`", cell(" ".join(rule.doc.split())), rule.floats, cell(_when(rule)))
        for rule in RULES
    ]
    return "\n\n".join(
        (
            note,
            "# Rules of algsimp",
            "The rules of [algsimp](passes/algsimp.md), in the order in which they are tried: of "
            "those for one opcode the first that applies is taken. `disable_rules` leaves out "
            "rules by these names, and `--statistics` counts how often each was applied. The third "
            "column says what results keep where floats take part (integers keep every bit): "
            "`preserve: rounding` leaves out rules that keep only `finite`, `preserve: bits` also "
            "those that keep up to `rounding`. Rules of your own: "
            "[pipelines.md](pipelines.md#rules-of-your-own).",
            table(("rule", "rewrite", "floats keep", "when"), rows),
        )
    ) + "\n"  # fmt: skip


def _when(rule: Rule) -> str:
    return ", ".join(filter(None, (_LAYOUTS[rule.layouts], rule.option and f"`{rule.option}`")))
