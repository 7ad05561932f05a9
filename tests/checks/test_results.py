"""Verdicts of checks become exit codes."""

from __future__ import annotations

import pytest

from hloopt.checks.results import Check, CheckedModule, Verdict, exit_code


@pytest.mark.parametrize(
    ("verdicts", "options", "expected"),
    [
        ("", {}, 0),
        ("P", {}, 0),
        ("PF", {}, 1),
        ("PN", {}, 2),
        ("FN", {}, 2),
        ("PN", {"allow_no_verdict": True}, 0),
        ("FN", {"allow_no_verdict": True}, 1),
        ("PF", {"exit_zero": True}, 0),
        ("FN", {"exit_zero": True}, 2),
        ("FN", {"exit_zero": True, "allow_no_verdict": True}, 0),
    ],
)
def test_exit_code(verdicts: str, options: dict[str, bool], expected: int) -> None:
    named = {"P": Verdict.PASSED, "F": Verdict.FAILED, "N": Verdict.NONE}
    checks = tuple(Check(letter, "", named[letter]) for letter in verdicts)
    assert exit_code([CheckedModule("a.hlo", "m", checks)], **options) == expected
    one_each = [CheckedModule("a.hlo", "m", (check,)) for check in checks]
    assert exit_code(one_each, **options) == expected


def test_checks_by_verdict() -> None:
    checks = (Check("a", "", Verdict.PASSED), Check("b", "", Verdict.NONE))
    module = CheckedModule("a.hlo", "m", checks)
    assert [check.name for check in module.with_verdict(Verdict.NONE)] == ["b"]
    assert module.with_verdict(Verdict.FAILED) == []
