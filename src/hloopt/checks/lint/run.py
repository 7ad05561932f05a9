"""Rules put to a module: each has findings or none, or does not run."""

from __future__ import annotations

from hloopt.checks.lint.costs import impact_text
from hloopt.checks.lint.model import Finding, Rule
from hloopt.checks.lint.settings import LintSettings
from hloopt.checks.results import Check, CheckedModule, Location, Severity, Verdict, Violation
from hloopt.checks.view import View


def lint(view: View, settings: LintSettings) -> CheckedModule:
    """The checks of a module, one for each rule that is selected, by code.

    Takes what the reports take that rules ask for, each made once.
    """
    subject = view.subject
    checks = [check_rule(rule, view, settings) for rule in settings.rules(subject.module.name)]
    return CheckedModule(subject.file, subject.module.name, tuple(checks))


def check_rule(rule: Rule, view: View, settings: LintSettings) -> Check:
    """The check of one rule; findings with the largest impact first."""
    doubt = rule.doubt(view)
    if doubt is not None:
        return Check(
            *(rule.code, rule.title, Verdict.NONE), reason=doubt.reason, remedy=doubt.remedy
        )
    violations = [
        violation
        for finding in rule.find(view, settings.options_of(rule))
        for violation in [_violation(rule, finding, view)]
        if not settings.is_silent(rule, violation.location.op_name)
    ]
    violations.sort(key=lambda violation: violation.impact, reverse=True)
    has_failed = any(each.severity is not Severity.NOTE for each in violations)
    verdict = Verdict.FAILED if has_failed else Verdict.PASSED
    return Check(rule.code, rule.title, verdict, tuple(violations))


def _violation(rule: Rule, finding: Finding, view: View) -> Violation:
    subject = view.subject
    costs = impact_text(finding.impact)
    return Violation(
        *(rule.code, finding.severity or rule.severity),
        finding.message + (f" ({costs})" if costs else ""),
        Location(subject.file)
        if finding.instruction is None
        else subject.location_of(finding.instruction),
        finding.help,
        tuple(map(subject.location_of, finding.related)),
        finding.impact,
    )
