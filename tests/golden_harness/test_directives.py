"""REQUIRES, UNSUPPORTED and XFAIL, and the conditions that they are made of."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import Source, Span
from hloopt.golden.conditions import holds
from hloopt.golden.directives import expected
from hloopt.golden.errors import GoldenError

HERE = Span(Source("t", "text"), 0, 4)
FEATURES = frozenset(("xla", "system-linux"))


@pytest.mark.parametrize(
    ("condition", "result"),
    [
        ("xla", True),
        ("gpu", False),
        ("!gpu", True),
        ("!!gpu", False),
        ("xla && gpu", False),
        ("gpu && gpu || xla", True),
        ("gpu && (gpu || xla)", False),
        ("!(gpu || xla)", False),
        ("{{system-.*}}", True),
        ("{{system}}", False),
        ("true && !false", True),
    ],
)
def test_conditions(condition: str, result: bool) -> None:
    assert holds(condition, FEATURES, HERE) is result


@pytest.mark.parametrize(
    "condition", ["", "&&", "xla &&", "(xla", "xla)", "xla gpu", "$", "{{(}}", "(" * 60 + "a"]
)
def test_what_is_no_condition_is_refused(condition: str) -> None:
    with pytest.raises(GoldenError) as error:
        holds(condition, FEATURES, HERE)
    assert error.value.span == HERE


@pytest.mark.parametrize(
    ("lines", "unsupported", "fails"),
    [
        ("", None, False),
        ("// REQUIRES: xla, system-linux", None, False),
        ("// REQUIRES: xla, gpu", "REQUIRES: gpu", False),
        ("// REQUIRES: xla\n// REQUIRES: gpu", "REQUIRES: gpu", False),
        ("// UNSUPPORTED: gpu", None, False),
        ("// UNSUPPORTED: gpu, xla", "UNSUPPORTED: xla", False),
        ("// XFAIL: gpu", None, False),
        ("// XFAIL: gpu, xla", None, True),
        ("// XFAIL: *", None, True),
        ("MY-REQUIRES: gpu", None, False),
    ],
)
def test_directives(lines: str, unsupported: str | None, fails: bool) -> None:
    assert expected(Source("t", f"{lines}\nHloModule m\n"), FEATURES) == (unsupported, fails)
