"""Numbers of whole modules: equal for equal content, whatever the names."""

from __future__ import annotations

import pytest

from hloopt.analysis.content.bodies import Bodies
from hloopt.analysis.content.content import Content
from hloopt.text import parse_module

TEXT = """HloModule m, is_scheduled=true

double {
  x = f32[4] parameter(0)
  ROOT s = f32[4] add(x, x)
}

ENTRY main {
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  a = f32[4] abs(p)
  c = f32[4] call(n), to_apply=double
  ROOT r = f32[4] add(c, a)
}
"""
SWAPPED = (
    "  n = f32[4] negate(p)\n  a = f32[4] abs(p)\n",
    "  a = f32[4] abs(p)\n  n = f32[4] negate(p)\n",
)


def number_is_kept(before: str, after: str) -> bool:
    """Whether two texts have one number."""
    bodies = Bodies(Content(frozenset(("names",))))
    return bodies.whole(parse_module(before)) == bodies.whole(parse_module(after))


def test_names_do_not_count() -> None:
    renamed = TEXT.replace("double", "twice").replace("c =", "d =").replace("(c,", "(d,")
    assert renamed != TEXT
    assert number_is_kept(TEXT, renamed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("abs(p)", "sqrt(p)", id="an opcode"),
        pytest.param("add(x, x)", "multiply(x, x)", id="a callee"),
        pytest.param("add(c, a)", "add(a, c)", id="operands"),
        pytest.param("HloModule m,", "HloModule m, replica_count=2,", id="the header"),
        pytest.param("ROOT r =", "r =", id="the root"),
    ],
)
def test_content_counts(old: str, new: str) -> None:
    changed = TEXT.replace(old, new)
    if old == "ROOT r =":
        changed = changed.replace("c = f32[4] call", "ROOT c = f32[4] call")
    assert not number_is_kept(TEXT, changed)


def test_order_counts_in_a_schedule_only() -> None:
    assert not number_is_kept(TEXT, TEXT.replace(*SWAPPED))
    plain = TEXT.replace(", is_scheduled=true", "")
    assert number_is_kept(plain, plain.replace(*SWAPPED))
