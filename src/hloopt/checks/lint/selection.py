"""Selections of rules: codes, the beginnings of codes, names, `ALL`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hloopt.checks.lint.model import Rule
from hloopt.checks.lint.registry import all_rules
from hloopt.diagnostics import HloError, did_you_mean

ALL = "ALL"


class SelectionError(HloError):
    """A selection of rules names none."""

    code = "HLO802"


def check_selectors(selectors: Iterable[str]) -> tuple[str, ...]:
    """The selectors, codes in upper case. Raises SelectionError for one that selects nothing."""
    rules = all_rules()
    found = []
    for given in selectors:
        selector = given if given in _names() else given.upper()
        if not any(_specificity(selector, rule) for rule in rules.values()):
            hint = did_you_mean(selector, (*rules, ALL)) or did_you_mean(given, _names())
            raise SelectionError(
                f"no rule is called '{given}'", help=hint or "`hloopt lint --list` lists the rules"
            )
        found.append(selector)
    return tuple(found)


def selected(select: Sequence[str], ignore: Sequence[str]) -> list[Rule]:
    """The rules that `select` has and `ignore` has not, by their codes.

    Where both have one, the more specific decides: `--select HLL1 --ignore HLL101`,
    `--ignore HLL1 --select HLL101`; `ignore` where they are equal.
    """
    return [
        rule
        for rule in all_rules().values()
        if _most_specific(select, rule) > _most_specific(ignore, rule)
    ]


def has(selectors: Sequence[str], rule: Rule) -> bool:
    """Whether one of some selectors is for a rule."""
    return _most_specific(selectors, rule) > 0


def _most_specific(selectors: Sequence[str], rule: Rule) -> int:
    return max((_specificity(selector, rule) for selector in selectors), default=0)


def _specificity(selector: str, rule: Rule) -> int:
    """How closely a selector describes a rule; 0 where it is not for it."""
    if selector == ALL:
        return 1
    if selector == rule.name:
        return 1 + len(rule.code)
    return 1 + len(selector) if selector and rule.code.startswith(selector) else 0


def _names() -> set[str]:
    return {rule.name for rule in all_rules().values()}
