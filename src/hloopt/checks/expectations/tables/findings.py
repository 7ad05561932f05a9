"""The table of what rules of lint find, with their default options."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.checks.doubts import Doubt
from hloopt.checks.expectations.doubts import asked
from hloopt.checks.expectations.model import Measure, Row, Table, count
from hloopt.checks.expectations.tables.parts import OP_NAME, key, keys_and_instructions
from hloopt.checks.expectations.units import BYTES, TIME
from hloopt.checks.lint.model import Finding, Rule
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.lint.settings import LintSettings
from hloopt.checks.results import Impact, Severity
from hloopt.checks.view import View
from hloopt.query.kinds import choice
from hloopt.query.terms import Term


def _rows(view: View) -> list[Row]:
    """Findings of the rules that have a verdict; one about a module is at the root of its entry."""
    module = view.subject.module
    settings = LintSettings()
    return [
        Row(finding.instruction or module.entry.root, (rule, finding))
        for rule in settings.rules(module.name)
        if rule.doubt(view) is None
        for finding in rule.find(view, settings.options_of(rule))
    ]


def _rule(record: tuple[Rule, Finding]) -> Rule:
    return record[0]


def _impact(read: Callable[[Impact], float]) -> Callable[[View], Callable[[Row], float]]:
    return lambda view: lambda row: read(row.record[1].impact)


def _doubt(view: View, term: Term | None) -> Doubt | None:
    """A rule that is asked for has no verdict; without a rule in the selector any rule."""
    names = [each for each in asked(term) if each.key.name == "rule"]
    for rule in LintSettings().rules(view.subject.module.name):
        is_asked = all(each.accepts is not None and each.accepts(rule.code) for each in names)
        doubt = rule.doubt(view) if is_asked else None
        if doubt is not None:
            return Doubt(f"{rule.code} does not run: {doubt.reason}", doubt.remedy)
    return None


FINDINGS = Table(
    "findings",
    "what the rules of `hloopt lint` find, with their default options",
    ("finding", "findings"),
    _rows,
    keys_and_instructions(
        "rule=HLL003",
        key("rule", choice("rule", all_rules), "code of the rule",
            lambda record: (_rule(record).code,)),
        key("severity", choice("severity", lambda: {each.value for each in Severity}),
            "error, warning or note", lambda record: (_rule(record).severity.value,)),
    ),
    (
        count(),
        Measure("time", "what they cost, by the cost model", TIME,
                _impact(lambda impact: impact.seconds)),
        Measure("moved", "bytes that they move", BYTES, _impact(lambda impact: impact.moved)),
        Measure("memory", "bytes that they take at the peak", BYTES,
                _impact(lambda impact: impact.memory)),
        OP_NAME,
    ),
    _doubt,
)  # fmt: skip
