"""Choices that XLA leaves to a backend."""

from __future__ import annotations

import pytest

from hloopt.reduction.outcomes import NOT_SHOWN, Verdict
from hloopt.reduction.predicates.engines import DiffersOnXla
from hloopt.reduction.predicates.freedoms import freedoms_of
from hloopt.text import parse_module

ORDER = "the order of a reduction"
START = "how often an initial value is applied"
KEYS = "the order of equal keys"


def module(applied: str, *instructions: str) -> str:
    """A module in which a computation with this root is applied to x."""
    lines = "\n  ".join(("x = f32[4000] parameter(0)", *instructions))
    return f"""HloModule m

by {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = {applied}
}}

ENTRY e {{
  {lines}
}}
"""


def reduction(root: str, initial: str = "constant(0)") -> str:
    reduce = "ROOT s = f32[] reduce(x, i), dimensions={0}, to_apply=by"
    return module(f"f32[] {root}", f"i = f32[] {initial}", reduce)


def sort(attributes: str, comparator: str = "compare(a, b), direction=LT") -> str:
    sort = f"ROOT s = f32[4000] sort(x), dimensions={{0}}, {attributes}to_apply=by"
    return module(f"pred[] {comparator}", sort)


@pytest.mark.parametrize(
    ("text", "freedoms"),
    [
        (reduction("add(a, b)"), set()),
        (reduction("add(a, b)", "constant(-0)"), set()),
        (reduction("multiply(b, a)", "constant(1)"), set()),
        (reduction("maximum(a, b)", "constant(-inf)"), set()),
        (reduction("add(a, b)", "constant(5)"), {START}),
        (reduction("maximum(a, b)"), {START}),
        (reduction("add(a, b)", "parameter(1)"), {START}),
        (reduction("subtract(a, b)"), {ORDER}),
        (reduction("add(a, a)"), {ORDER}),
        (sort("is_stable=true, "), set()),
        (sort(""), {KEYS}),
        (sort("is_stable=true, ", "constant(false)"), {KEYS}),
    ],
)
def test_what_is_left_open(text: str, freedoms: set[str]) -> None:
    assert freedoms_of(parse_module(text)) == freedoms


@pytest.mark.oracle
def test_what_leaves_more_open_than_the_input_is_another_failure() -> None:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    ask = DiffersOnXla()
    of_a_sum = ask.narrowed(reduction("add(a, b)"), NOT_SHOWN)
    takes_the_last = reduction("subtract(b, a)")
    assert ask(takes_the_last).is_shown
    assert ask.narrowed(takes_the_last, NOT_SHOWN)(takes_the_last).is_shown
    assert of_a_sum(takes_the_last).detail == f"XLA may choose {ORDER}"
    assert of_a_sum(reduction("add(a, b)", "constant(5)")).detail == f"XLA may choose {START}"


def test_a_module_that_is_invalid_is_no_failure_of_xla() -> None:
    outcome = DiffersOnXla()(reduction("add(a, b)").replace(", to_apply=by", ""))
    assert outcome.verdict is Verdict.UNKNOWN
    assert "to_apply" in outcome.detail
