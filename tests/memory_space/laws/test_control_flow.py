"""The checker of memory space assignment knows when loops, branches and calls need their values."""

from __future__ import annotations

import pytest
from tests.memory_space.laws.results import Places, edited, kinds

from memory_space_lib.faults import Kind

LOOP = """HloModule m, is_scheduled=true

cond {
  cp = (f32[8]SPACE, f32[8], s32[]) parameter(0)
  ci = s32[] get-tuple-element(cp), index=2
  limit = s32[] constant(3)
  ROOT less = pred[] compare(ci, limit), direction=LT
}

body {
  bp = (f32[8]SPACE, f32[8], s32[]) parameter(0)
  b0 = f32[8]SPACE get-tuple-element(bp), index=0
  b1 = f32[8] get-tuple-element(bp), index=1
  b2 = s32[] get-tuple-element(bp), index=2
  x = f32[8]INNER negate(b1)
  y = f32[8] negate(x)
  one = s32[] constant(1)
  next = s32[] add(b2, one)
  z = f32[8]SPACE add(b0, y)
  ROOT bt = (f32[8]SPACE, f32[8], s32[]) tuple(z, b1, next)
}

ENTRY e {
  p = f32[8] parameter(0)
  i = s32[] parameter(1)
  a = f32[8]SPACE negate(p)
  o = f32[8]OUTER negate(p)
  t = (f32[8]SPACE, f32[8], s32[]) tuple(a, p, i)
  w = (f32[8]SPACE, f32[8], s32[]) while(t), condition=cond, body=body
  w0 = f32[8]SPACE get-tuple-element(w), index=0
  ROOT r = f32[8] add(w0, o)
}
"""


def _spaces(text: str, **colored: bool) -> str:
    for name in ("SPACE", "INNER", "OUTER"):
        text = text.replace(name, "{0:S(1)}" if colored.get(name.lower()) else "")
    return text


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ({"a": (0, 32), "bp[0]": (0, 32), "z": (0, 32), "w[0]": (0, 32)}, set()),
        ({"a": (0, 32)}, set()),
        ({"a": (0, 32), "z": (32, 32)}, {Kind.CHUNK}),
        ({"a": (0, 32), "x": (32, 32)}, set()),
        ({"a": (0, 32), "x": (0, 32)}, {Kind.OVERLAP}),
        ({"a": (0, 32), "o": (32, 32)}, set()),
        ({"a": (0, 32), "o": (0, 32)}, {Kind.OVERLAP}),
        ({"x": (0, 32), "o": (32, 32)}, set()),
        ({"x": (0, 32), "o": (0, 32)}, {Kind.OVERLAP}),
    ],
)
def test_what_a_loop_carries_has_one_place_all_the_time(
    places: Places, expected: set[Kind]
) -> None:
    after = _spaces(LOOP, space="a" in places, inner="x" in places, outer="o" in places)
    assert kinds(_spaces(LOOP), after, places) == expected


BRANCHES = """HloModule m, is_scheduled=true

first {
  q0 = f32[8]SPACE parameter(0)
  x0 = f32[8]INNER negate(p0.0)
  ROOT y0 = f32[8] add(q0, x0)
}

second {
  q1 = f32[8] parameter(0)
  x1 = f32[8]INNER negate(q1)
  ROOT y1 = f32[8] negate(x1)
}

ENTRY e {
  p = f32[8] parameter(0)
  k = s32[] parameter(1)
  a = f32[8]SPACE negate(p)
  c = f32[8] conditional(k, a, p), branch_computations={first, second}
  ROOT r = f32[8] add(c, p)
}
""".replace("negate(p0.0)", "negate(q0)")


def test_a_branch_may_use_what_only_the_other_one_needs() -> None:
    after = _spaces(BRANCHES, space=True, inner=True)
    places = {"a": (0, 32), "x0": (32, 32), "x1": (0, 32)}
    assert kinds(_spaces(BRANCHES), after, places) == set()
    assert kinds(_spaces(BRANCHES), after, {**places, "x0": (0, 32)}) == {Kind.OVERLAP}
    later = [("add(c, p)", "add(c, a)")]
    before, used = edited(_spaces(BRANCHES), later), edited(after, later)
    assert kinds(before, used, places) == {Kind.OVERLAP}


CALL = """HloModule m, is_scheduled=true

callee {
  q = f32[8]SPACE parameter(0)
  x = f32[8]INNER negate(q)
  ROOT y = f32[8]OUTER add(x, q)
}

ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8]SPACE negate(p)
  c = f32[8]OUTER call(a), to_apply=callee
  ROOT r = f32[8] add(c, p)
}
"""


def test_a_call_and_the_root_of_what_it_calls_have_one_place() -> None:
    after = _spaces(CALL, space=True, inner=True, outer=True)
    places = {"a": (0, 32), "x": (32, 32), "c": (64, 32)}
    assert kinds(_spaces(CALL), after, places) == set()
    assert kinds(_spaces(CALL), after, {**places, "y": (96, 32)}) >= {Kind.CHUNK, Kind.SIZE}
    assert kinds(_spaces(CALL), after, {**places, "x": (0, 32)}) == {Kind.OVERLAP}
    assert kinds(_spaces(CALL), after, {**places, "c": (32, 32)}) == {Kind.OVERLAP}


# -- parameters that are loaded before the program ------------------------------------------------

CROSS = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[8] parameter(0)
  s = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) copy-start(p), cross_program_prefetch_index=0
  q = f32[8] parameter(1)
  t = f32[8]{0:S(1)} copy-done(s)
  a = f32[8] negate(t)
  b = f32[8]{0:S(1)} negate(q)
  c = f32[8] add(b, a)
  AGAIN
  ROOT r = f32[8] add(c, a)
}
"""
UNCROSSED = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  a = f32[8] negate(p)
  b = f32[8] negate(q)
  c = f32[8] add(b, a)
  ROOT r = f32[8] add(c, a)
}
"""


def test_what_the_next_run_needs_stays_or_comes_again() -> None:
    kept = CROSS.replace("AGAIN", "")
    assert kinds(UNCROSSED, kept, {"t": (0, 32), "b": (32, 32)}) == set()
    assert kinds(UNCROSSED, kept, {"t": (0, 32), "b": (0, 32)}) == {Kind.OVERLAP}
    again = CROSS.replace(
        "AGAIN",
        "again = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) copy-start(p)\n"
        "  t2 = f32[8]{0:S(1)} copy-done(again)",
    )
    assert kinds(UNCROSSED, again, {"t": (0, 32), "b": (0, 32), "t2": (0, 32)}) == set()
    elsewhere = {"t": (0, 32), "b": (0, 32), "t2": (32, 32)}
    assert kinds(UNCROSSED, again, elsewhere) == {Kind.CHUNK}
