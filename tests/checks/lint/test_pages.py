"""Every rule has a page, every page a rule, and the examples do what they say."""

from __future__ import annotations

import re

import pytest
from tests.checks.lint.linting import check

from hloopt.checks.lint.registry import all_rules
from hloopt.checks.results import Severity
from hloopt.explanations import RULE_FAMILIES, explain, rule_codes
from hloopt.options import option_types

EXAMPLE = re.compile(r"```hlo\n(.*?)```", re.S)
SECTIONS = ["Why it matters", "Example", "What to do", "Figures"]
OPTIONS_OF_EXAMPLE = re.compile(r"<!-- options: (\{.*?\}) -->")


def test_rules_and_pages_belong_together() -> None:
    assert list(all_rules()) == rule_codes()
    names = [rule.name for rule in all_rules().values()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("code", rule_codes())
def test_a_page_has_its_sections(code: str) -> None:
    explanation = explain(code)
    assert explanation is not None
    assert explanation.text.startswith(
        f"# {code}: {explanation.title}\n\n`{all_rules()[code].name}`"
    )
    assert explanation.title[0].islower() or explanation.title[1].isupper()
    assert explanation.family in RULE_FAMILIES.values()
    assert re.findall(r"^## (.*)$", explanation.text, re.M) == SECTIONS
    assert max(map(len, explanation.text.splitlines())) <= 100


@pytest.mark.parametrize("code", rule_codes())
def test_the_first_example_is_found_and_the_others_are_not(code: str) -> None:
    explanation = explain(code)
    assert explanation is not None
    examples = EXAMPLE.findall(explanation.text)
    assert len(examples) >= 2
    given = OPTIONS_OF_EXAMPLE.search(explanation.text)
    options = {} if given is None else eval(given[1], {"__builtins__": {}})
    for number, text in enumerate(examples):
        found = check(code, text, **options)
        assert not found.reason
        assert bool(found.violations) == (number == 0)


@pytest.mark.parametrize("code", rule_codes())
def test_a_rule_is_declared_well(code: str) -> None:
    rule = all_rules()[code]
    assert rule.severity in Severity
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    declared = option_types(rule.options)
    assert not rule.compares_with or rule.compares_with in declared
    rule.options()
