"""Findings against a baseline, in the form of baselines of expectations.

Findings are kept as figures in the language of expectations, by rule and op_name, so that a
compiler may rename what it likes: `findings(rule=HLL003, op_name="jit(f)/dot_general").count`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hloopt.checks.baselines.figures import known, quoted, schedule_text, values_of
from hloopt.checks.expectations.units import Number
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.lint.settings import LintSettings
from hloopt.checks.results import Check, CheckedModule, Severity, Verdict, Violation
from hloopt.checks.view import View
from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import counted
from hloopt.options import Share

LIMITS = {
    "HLL601": "memory.peak",
    "HLL602": "memory.temporaries",
    "HLL604": "cost.flops",
}
"""The figure of a baseline that takes the place of the limit of a rule."""


def figures_of(view: View, checked: CheckedModule) -> dict[str, Number]:
    """The figures of a module for a baseline, and the count of its findings of each kind.

    Takes what the reports of the figures take.
    """
    return {**known(values_of(view)), **_counts(checked)}


def with_limits(
    settings: LintSettings, before: Mapping[str, Number], cost_model: CostModelChoice
) -> LintSettings:
    """Settings whose limits are the figures of a baseline, where none are set.

    Times of a baseline count if they are by the same cost model.
    """
    options = dict(settings.options)
    limits = {code: before[figure] for code, figure in LIMITS.items() if figure in before}
    if (share := _exposed_share(before, cost_model)) is not None:
        limits[_EXPOSED_TIME] = share
    for code, limit in limits.items():
        rule = all_rules()[code]
        own = settings.options_of(rule)
        if getattr(own, rule.compares_with) is None:
            options[code] = replace(own, **{rule.compares_with: limit})
    return replace(settings, options=options)


_EXPOSED_TIME = "HLL603"


def _exposed_share(before: Mapping[str, Number], cost_model: CostModelChoice) -> Share | None:
    """The share of the makespan that a baseline has as exposed."""
    chosen = schedule_text(cost_model)
    exposed, makespan = before.get(f"{chosen}.exposed"), before.get(f"{chosen}.makespan")
    return Share(exposed / makespan) if exposed is not None and makespan else None


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
