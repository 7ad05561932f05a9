"""Comparing the result with a text."""

from __future__ import annotations

import pytest
from tests.tools.conformance.harness import SUM, check


@pytest.mark.parametrize(
    ("old", "new", "modulo"),
    [
        ("", "", "nothing: this is the exact text"),
        ("%q", "%other", "instruction names"),
        ("%f", "%g", "computation names"),
        ("constant(1)", "constant(1.0)", "ids"),
        (', metadata={op_name="n"}', "", "metadata"),
    ],
)
def test_modules_are_equal_modulo_what_is_listed(old: str, new: str, modulo: str) -> None:
    other = SUM.replace(old, new) if old else SUM
    expected = {"equals_module": other, "modulo": modulo}
    assert check(SUM, expected).failures == []
    if new or old:
        strict = expected | {"modulo": "backend_config"}
        assert bool(check(SUM, strict).failures) == (modulo != "ids")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("negate", "abs", "another opcode"),
        ("constant(1)", "constant(2)", "another value in parentheses"),
        ("add(%y, %c)", "add(%y, %c), control-predecessors={%p}", "other control predecessors"),
        ('op_name="n"', 'op_name="m"', "expected attributes"),
        ("  %c = f32[] constant(1)\n", "", "unknown operand"),
    ],
)
def test_difference_of_modules_is_named(old: str, new: str, message: str) -> None:
    outcome = check(SUM, {"equals_module": SUM.replace(old, new), "modulo": "names"})
    assert message in "\n".join(outcome.failures)


def test_exact_text_is_compared_line_by_line() -> None:
    expected = {"equals_module": SUM, "modulo": "nothing: exact", "exact_text": True}
    assert check(SUM.replace("%", ""), expected).failures == []
    spaced = expected | {"equals_module": SUM.replace("(%y, %c)", "(%y,  %c)")}
    assert "of the print: expected" in check(SUM, spaced).failures[0]
