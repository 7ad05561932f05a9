"""Rules put to modules in tests."""

from __future__ import annotations

from typing import Any

from hloopt.checks.lint.registry import all_rules
from hloopt.checks.lint.run import check_rule
from hloopt.checks.lint.settings import LintSettings
from hloopt.checks.results import Check, Violation
from hloopt.checks.subject import Subject
from hloopt.checks.view import View
from hloopt.cost_models import CostModelChoice
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, verify_module

TARGET = "h100_sxm"


def check(code: str, text: str, *, target: str | None = TARGET, **options: Any) -> Check:
    """The check of a rule on the module in a text, with options of the rule."""
    rule = all_rules()[code]
    settings = LintSettings(options={code: rule.options(**options)} if options else {})
    module = parse_module(text)
    assert [error.message for error in verify_module(module, ANY_TARGET)] == []
    subject = Subject("m.hlo", module, CostModelChoice(target=target))
    return check_rule(rule, View.of(subject), settings)


def violations(code: str, text: str, **given: Any) -> tuple[Violation, ...]:
    """What a rule finds; it must have a verdict."""
    found = check(code, text, **given)
    assert not found.reason, found.reason
    return found.violations


def found_names(code: str, text: str, **given: Any) -> list[str]:
    """The instructions that a rule finds, the most costly first."""
    return [each.location.instruction for each in violations(code, text, **given)]
