"""Equal keys mean equal instructions."""

from __future__ import annotations

import pytest

from hloopt.analysis.equality import Equality
from hloopt.ir import Instruction
from hloopt.text import parse_module

TEXT = """
plus {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }}
plus2 {{ v = f32[] parameter(0) w = f32[] parameter(1) 
  ROOT t = f32[] add(v, w), metadata={{op_name="t"}} }}
swap {{ v = f32[] parameter(1) w = f32[] parameter(0) ROOT t = f32[] add(v, w) }}
times {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] multiply(x, y) }}
ENTRY e {{
  p = f32[2,3] parameter(0)
  q = f32[2,3] parameter(1)
  z = f32[] constant(0)
  a = {a}
  b = {b}
}}
"""


def pair(a: str, b: str) -> tuple[Instruction, Instruction]:
    found = {i.name: i for i in parse_module(TEXT.format(a=a, b=b)).entry.instructions}
    return found["a"], found["b"]


def equal(a: str, b: str, *, is_layout_sensitive: bool = False) -> bool:
    first, second = pair(a, b)
    equality = Equality(is_layout_sensitive=is_layout_sensitive)
    return (
        equality.operation(first) == equality.operation(second)
        and equality.operands(first, {}) == equality.operands(second, {})
        and equality.same_callees(first, second)
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("f32[2,3] add(p, q)", "f32[2,3] add(q, p)"),
        ("f32[2,3] add(p, q)", 'f32[2,3] add(p, q), metadata={op_name="x"}'),
        ("f32[2,3] add(p, q)", 'f32[2,3] add(p, q), frontend_attributes={k="v"}'),
        (
            "f32[2] reduce(p, z), dimensions={1}, to_apply=plus",
            "f32[2] reduce(p, z), to_apply=plus2, dimensions={ 1 }",
        ),
        ("f32[2,3] copy(p)", "f32[2,3]{0,1} copy(p)"),
    ],
)
def test_equal(a: str, b: str) -> None:
    assert equal(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("f32[2,3] subtract(p, q)", "f32[2,3] subtract(q, p)"),
        ("f32[2,3] add(p, q)", "f32[2,3] multiply(p, q)"),
        ("f32[2,3] add(p, q)", "f32[2,3] add(p, q), sharding={replicated}"),
        ("f32[2,3] add(p, q)", 'f32[2,3] add(p, q), frontend_attributes={xla.sdy.s="v"}'),
        (
            "f32[2] reduce(p, z), dimensions={1}, to_apply=plus",
            "f32[2] reduce(p, z), dimensions={1}, to_apply=times",
        ),
        (
            "f32[2] reduce(p, z), dimensions={1}, to_apply=plus",
            "f32[2] reduce(p, z), dimensions={1}, to_apply=swap",
        ),
        ("f32[2] slice(p), slice={[0:2]}", "f32[2] slice(p), slice={[1:3]}"),
    ],
)
def test_different(a: str, b: str) -> None:
    assert not equal(a, b)


def test_layouts_count_where_asked() -> None:
    assert not equal("f32[2,3] copy(p)", "f32[2,3]{0,1} copy(p)", is_layout_sensitive=True)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("f32[] constant(1)", "f32[] constant(1.0)", True),
        ("f32[] constant(0.0)", "f32[] constant(-0.0)", False),
        ("f32[] constant(1)", "s32[] constant(1)", False),
        ("s32[2] constant({1,2})", "s32[2] constant({1, 2})", True),
        ("f32[99] constant({...})", "f32[99] constant({...})", False),
    ],
)
def test_constants_are_compared_by_value(a: str, b: str, same: bool) -> None:
    equality = Equality(is_layout_sensitive=False)
    first, second = pair(a, b)
    assert (equality.constant(first) == equality.constant(second)) == same


def test_a_changed_computation_is_compared_anew_once_forgotten() -> None:
    a, b = pair(
        "f32[2] reduce(p, z), dimensions={1}, to_apply=plus",
        "f32[2] reduce(p, z), dimensions={1}, to_apply=plus2",
    )
    equality = Equality(is_layout_sensitive=False)
    assert equality.same_callees(a, b)
    b.called[0].root.set_attribute("sharding", "{replicated}")
    equality.forget(b.called[0])
    assert not equality.same_callees(a, b)
