"""Effects beside outputs, and what never ran."""

from __future__ import annotations

import pytest
from tests.equivalence.programs import P, compare, entry

from hloopt.equivalence import Reference, RunSettings
from hloopt.text import parse_module

TOKEN = "t = token[] after-all()"
HEADER = (P, TOKEN, "x = f32[64] negate(p)")
ROOT = "ROOT r = f32[64] add(p, x)"
LOG = 'c{0} = f32[64] custom-call(p), custom_call_target="{1}", custom_call_has_side_effect=true'


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        (["o = token[] outfeed(x, t)"], [], "outfeed %o (<text>:7) ran once, it runs never"),
        ([], ["o = token[] outfeed(x, t)"], "outfeed %o (<text>:7) ran never, it runs once"),
        (["o = token[] outfeed(x, t)"], ["o = token[] outfeed(p, t)"], "outfeed %o{0}[0] was "),
        (
            ["k = s32[2] constant({1,2})", "o = token[] outfeed(k, t)"],
            ["o = token[] outfeed(x, t)"],
            "outfeed %o (<text>:8) got (s32[2], token[]), it gets (f32[64], token[])",
        ),
        ([LOG.format(1, "a")], [LOG.format(1, "b")], 'custom call "a" %c1 (<text>:7) ran once'),
        (
            [LOG.format(1, "a"), LOG.format(2, "b") + ", control-predecessors={c1}"],
            [LOG.format(2, "b"), LOG.format(1, "a") + ", control-predecessors={c2}"],
            'custom call "b" %c2 (<text>:8) ran after custom call "a" %c1 (<text>:7), '
            "it runs before",
        ),
    ],
)
def test_other_effects_differ(left: list[str], right: list[str], reason: str) -> None:
    mismatch = compare(entry(*HEADER, *left, ROOT), entry(*HEADER, *right, ROOT))
    assert mismatch is not None
    assert mismatch.is_decided
    assert mismatch.reason.startswith(reason)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["o = token[] outfeed(x, t)"], ["o = token[] outfeed(x, t)"]),
        # Nothing says which of the two comes first.
        ([LOG.format(1, "a"), LOG.format(2, "b")], [LOG.format(2, "b"), LOG.format(1, "a")]),
        ([LOG.format(1, "Sharding")], []),
        (['c1 = f32[64] custom-call(p), custom_call_target="a"'], []),
    ],
)
def test_the_same_effects_are_equal(left: list[str], right: list[str]) -> None:
    assert compare(entry(*HEADER, *left, ROOT), entry(*HEADER, *right, ROOT)) is None


BRANCHES = """HloModule m
x { xa = f32[8] parameter(0) ROOT xr = f32[8] negate(xa) }
y { ya = f32[8] parameter(0) ROOT yr = f32[8] add(ya, ya) }
z { za = f32[8] parameter(0) ROOT zr = f32[8] multiply(za, za) }
ENTRY e {
  s = s32[] parameter(0)
  p = f32[8] parameter(1)
  ROOT r = f32[8] conditional(s, p, p, p), branch_computations={x, y, z}
}
"""


@pytest.mark.parametrize("branches", ["z, y, z", "x, x, z", "x, y, y"])
def test_each_branch_that_a_parameter_selects_runs(branches: str) -> None:
    right = BRANCHES.replace("{x, y, z}", f"{{{branches}}}")
    assert compare(parse_module(BRANCHES), parse_module(right)) is not None


def test_branches_and_bodies_that_never_ran_are_told() -> None:
    text = BRANCHES.replace(
        "s = s32[] parameter(0)", "k = s32[] parameter(0) s = s32[] constant(1)"
    )
    found = Reference(parse_module(text), RunSettings()).examine(parse_module(text))
    assert found.mismatch is None
    assert found.notes == [
        "branch 0 (%x) of %r (<text>:8) never ran",
        "branch 2 (%z) of %r (<text>:8) never ran",
    ]
    loop = """HloModule m
    c { i = s32[] parameter(0) k = s32[] constant(0) ROOT l = pred[] compare(i, k), direction=LT }
    b { i = s32[] parameter(0) ROOT n = s32[] negate(i) }
    ENTRY e { z = s32[] constant(7) ROOT w = s32[] while(z), condition=c, body=b }
    """
    found = Reference(parse_module(loop), RunSettings()).examine(parse_module(loop))
    assert found.notes == ["the body of loop %w (<text>:4) never ran"]


def test_what_overflows_is_told_apart() -> None:
    p, q = "p = u8[8] parameter(0)", "q = u8[8] parameter(1)"
    left = entry(p, q, "ROOT r = u8[8] add(p, q)")
    right = entry(
        *(p, q, "a = u16[8] convert(p)", "b = u16[8] convert(q)", "s = u16[8] add(a, b)"),
        *("m = u16[] constant(255)", "n = u16[8] broadcast(m), dimensions={}"),
        *("c = u16[8] minimum(s, n)", "ROOT r = u8[8] convert(c)"),
    )
    assert compare(left, right) is not None


def test_a_program_that_goes_on_and_on_differs_from_one_that_ends() -> None:
    ends = """HloModule m
    cond { x = s32[] parameter(0) ROOT t = pred[] constant(false) }
    twice { x = s32[] parameter(0) ROOT s = s32[] add(x, x) }
    ENTRY e { p = s32[] parameter(0) ROOT w = s32[] while(p), condition=cond, body=twice }
    """
    endless = ends.replace("constant(false)", "constant(true)")
    for steps, is_decided in ((1000, True), (100, False)):
        mismatch = Reference(parse_module(ends), RunSettings(steps=steps)).compare(
            parse_module(endless)
        )
        assert mismatch is not None
        assert mismatch.is_decided == is_decided
