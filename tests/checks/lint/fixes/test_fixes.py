"""Costs of findings are what the pass that fixes them saves, by the models of the rules."""

from __future__ import annotations

import pytest
from tests.checks.lint.fixes.cases import CASES
from tests.checks.lint.fixes.measuring import measure
from tests.checks.lint.test_pages import EXAMPLE

from hloopt.checks.lint.costs import total
from hloopt.checks.lint.fixes import FIXES, UNFIXED, Claim
from hloopt.checks.lint.pages import page_of
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.results import Impact
from hloopt.explanations import explain
from hloopt.text import parse_module
from hloopt.verifier import verify_module

AT_MOST = (Claim.MOST_WAITING, Claim.MOST_MEMORY)
FIELDS = {
    "seconds": {Claim.BUSY, Claim.WAITING, Claim.MOST_WAITING},
    "moved": {Claim.MOVED},
    "memory": {Claim.MEMORY, Claim.MOST_MEMORY},
}


def test_each_rule_has_a_fix_or_a_reason_why_not() -> None:
    assert sorted({**FIXES, **UNFIXED}) == list(all_rules())
    assert not FIXES.keys() & UNFIXED.keys()
    assert CASES.keys() <= FIXES.keys()


@pytest.mark.parametrize("code", all_rules())
def test_the_page_says_so(code: str) -> None:
    fix = FIXES.get(code)
    (section,) = page_of(code).split("## Fix by passes\n\n")[1:]
    if fix is None:
        assert section.startswith(f"None of the passes: {UNFIXED[code]}.\n\n")
        return
    assert section.startswith(f"```sh\nhloopt opt step.hlo --passes '{fix.passes}'\n```\n\n")
    words = section.replace("\n", " ")
    for sentence in (*(claim.value for claim in fix.claims), fix.limit):
        assert sentence in words


@pytest.mark.parametrize("code", FIXES)
def test_the_cost_of_a_finding_is_what_the_fix_saves(code: str) -> None:
    explanation = explain(code)
    assert explanation is not None
    measured = measure(code, parse_module(CASES.get(code) or EXAMPLE.findall(explanation.text)[0]))
    assert verify_module(measured.before.subject.module) == []
    assert measured.found
    assert not measured.left
    claims = FIXES[code].claims
    for claim in claims:
        claimed, saved = measured.claimed(claim), measured.saved(claim)
        assert claimed > 0
        if claim in AT_MOST:
            assert 0 < saved <= claimed * (1 + 1e-9)
        else:
            assert saved == pytest.approx(claimed, rel=1e-9)
    cost = total(each.impact for each in measured.found)
    for field in Impact.__slots__:
        assert not getattr(cost, field) or FIELDS[field] & set(claims), f"{field} is not measured"
