"""All rules of the algebraic simplifier, in the order in which they are tried."""

from __future__ import annotations

from functools import cache, lru_cache

from hloopt.diagnostics import PipelineError, did_you_mean
from hloopt.passes.rewriting.rules.rule import Rule, RuleTable
from hloopt.passes.simplification.algsimp import control
from hloopt.passes.simplification.algsimp.arithmetic import (
    add,
    compare,
    divide,
    functions,
    minmax,
    multiply,
    select,
    subtract,
)
from hloopt.passes.simplification.algsimp.options import AlgsimpOptions
from hloopt.passes.simplification.algsimp.rearranging import (
    broadcast,
    chains,
    convert,
    copy,
    copy_layouts,
    gather,
    indexing,
    pieces,
    reshape,
    slices,
)
from hloopt.passes.simplification.algsimp.reductions import (
    convolution,
    dot,
    dot_cost,
    reduce,
    scatter,
    windows,
)

RULES: tuple[Rule, ...] = (
    *add.RULES,
    *scatter.ADD_RULES,
    *subtract.RULES,
    *multiply.RULES,
    *divide.RULES,
    *compare.RULES,
    *select.RULES,
    *minmax.RULES,
    *functions.RULES,
    *broadcast.RULES,
    *control.RULES,
    *convert.RULES,
    *reshape.RESHAPE_RULES[:4],
    scatter.transpose_of_scatter,
    *reshape.TRANSPOSE_RULES[:2],
    *copy.BITCAST_RULES,
    *chains.RULES_OF_CHAINS,
    reshape.bitcast_of_broadcast,
    *reshape.RESHAPE_RULES[4:],
    dot.transpose_of_dot,
    *reshape.TRANSPOSE_RULES[2:],
    *copy.COPY_RULES,
    *copy_layouts.COPY_RULES,
    *chains.RULES_OF_BITCASTS,
    *copy_layouts.RESHAPE_RULES,
    *slices.RULES[:5],
    dot_cost.slice_of_dot,
    *slices.RULES[5:],
    *pieces.CONCATENATE_RULES,
    *pieces.PAD_RULES,
    *pieces.REVERSE_RULES,
    *indexing.RULES,
    *convolution.RULES,
    *dot.RULES[:2],
    *dot_cost.DOT_RULES,
    *dot.RULES[2:],
    *dot_cost.REDUCE_RULES,
    *reduce.RULES,
    *windows.RULES,
    *gather.RULES,
    *scatter.RULES,
)
"""Of the rules for one opcode the first that applies is taken."""


@cache
def rules_by_name() -> dict[str, Rule]:
    """The rules by their names, which are unique."""
    return {rule.name: rule for rule in RULES}


def check_names(names: tuple[str, ...]) -> None:
    """Raise PipelineError for a name that no rule has."""
    known = rules_by_name()
    for name in names:
        if name not in known:
            raise PipelineError(
                f"algsimp has no rule '{name}'",
                help=did_you_mean(name, known) or "its page in docs/passes lists the rules",
            )


def table_for(options: AlgsimpOptions) -> RuleTable:
    """The rules that run with these options. Raises PipelineError for unknown `disable_rules`."""
    check_names(options.disable_rules)
    left_out = "sensitive" if not options.is_layout_sensitive else "insensitive"
    return _table_of(
        tuple(
            rule.name
            for rule in RULES
            if rule.layouts != left_out
            and rule.name not in options.disable_rules
            and (rule.option is None or getattr(options, rule.option))
        )
    )


@lru_cache(maxsize=8)
def _table_of(names: tuple[str, ...]) -> RuleTable:
    """A table that all runs of a process share: what it knows of signatures stays true."""
    return RuleTable(rules_by_name()[name] for name in names)
