"""Findings against a baseline, in the form of baselines of expectations.

Findings are kept as figures in the language of expectations, by rule and op_name, so that a
compiler may rename what it likes: `findings(rule=HLL003, op_name="jit(f)/dot_general").count`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hloopt.checks.baselines.figures import known, quoted, values_of
from hloopt.checks.expectations.units import Number
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.lint.settings import LintSettings
from hloopt.checks.results import Check, CheckedModule, Severity, Verdict, Violation
from hloopt.checks.view import View
from hloopt.diagnostics import counted

LIMITS = {
    "HLL601": "memory.peak",
    "HLL602": "memory.temporaries",
    "HLL604": "cost.flops",
}
"""The figure of a baseline that takes the place of the limit of a rule."""


def figures_of(view: View, checked: CheckedModule) -> dict[str, Number]:
    """What a baseline holds of a module: its figures, and how many findings of each kind.

    Takes what the reports of the figures take.
    """
    return {**known(values_of(view)), **_counts(checked)}


def with_limits(settings: LintSettings, before: Mapping[str, Number]) -> LintSettings:
    """Settings whose limits are the figures of a baseline, where none are set."""
    options = dict(settings.options)
    for code, figure in LIMITS.items():
        if figure not in before:
            continue
        rule = all_rules()[code]
        own = settings.options_of(rule)
        if getattr(own, rule.compares_with) is None:
            options[code] = replace(own, **{rule.compares_with: before[figure]})
    return replace(settings, options=options)


def without_known(checked: CheckedModule, before: Mapping[str, Number]) -> CheckedModule:
    """The checks of a module without findings that a baseline has as many of.

    Where there are more of a kind than in the baseline, all of that kind stay: which are new is
    not known.
    """
    now = _counts(checked)
    old = {text for text, count in now.items() if count <= before.get(text, 0)}
    return replace(checked, checks=tuple(_without(check, old) for check in checked.checks))


def _without(check: Check, old: set[str]) -> Check:
    kept = tuple(each for each in check.violations if _text_of(each) not in old)
    gone = len(check.violations) - len(kept)
    if not gone:
        return check
    fails = any(each.severity is not Severity.NOTE for each in kept)
    return replace(
        check,
        verdict=Verdict.FAILED if fails else Verdict.PASSED,
        violations=kept,
        notes=(*check.notes, f"{counted(gone, 'finding')} as in the baseline"),
    )


def _counts(checked: CheckedModule) -> Counter[str]:
    return Counter(_text_of(each) for check in checked.checks for each in check.violations)


def _text_of(violation: Violation) -> str:
    """The figure that a finding adds one to."""
    op_name = violation.location.op_name
    named = f"op_name={quoted(op_name)}" if op_name else "not op_name=*"
    return f"findings(rule={violation.code}, {named}).count"
