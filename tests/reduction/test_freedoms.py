"""Choices that XLA leaves to a backend."""

from __future__ import annotations

import pytest

from hloopt.reduction.predicates.freedoms import freedoms_of
from hloopt.reduction.predicates.modules import DiffersOnXla
from hloopt.text import parse_module

ORDER = "the order of a reduction"
START = "how often an initial value is applied"
KEYS = "the order of equal keys"


def reduction(root: str, initial: str = "constant(0)") -> str:
    return f"""HloModule m
by {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] {root}
}}
ENTRY e {{
  x = f32[8] parameter(0)
  init = f32[] {initial}
  ROOT s = f32[] reduce(x, init), dimensions={{0}}, to_apply=by
}}
"""


def sort(attributes: str, comparator: str = "compare(a, b), direction=LT") -> str:
    return f"""HloModule m
by {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] {comparator}
}}
ENTRY e {{
  x = f32[8] parameter(0)
  ROOT s = f32[8] sort(x), dimensions={{0}}, {attributes}to_apply=by
}}
"""


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
    begins_with_five = reduction("add(a, b)", "constant(5)").replace("f32[8]", "f32[4000]")
    takes_the_last = begins_with_five.replace("add(a, b)", "subtract(b, a)")
    ask = DiffersOnXla()
    shown = ask(takes_the_last)
    assert shown.is_shown
    assert ask.narrowed(shown)(takes_the_last).signature == shown.signature
    of_another = ask.narrowed(shown._replace(signature="values differ"))
    assert of_another(takes_the_last).detail == "XLA may choose the order of a reduction"
    assert of_another(begins_with_five).detail == f"XLA may choose {START}"
