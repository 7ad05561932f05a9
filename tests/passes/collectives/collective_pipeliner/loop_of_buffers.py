"""A loop that stores what it reduces, and the reasons of collective-pipeliner to leave it alone."""

from __future__ import annotations

from typing import Any

from tests.passes.checked_run import reasons_to_stay

ELEMENTS = "f32[4,8], f32[4,8], f32[4,8], s32[], token[]"


def loop(
    body: str,
    ends: str = "stored, y",
    *,
    limit: int = 4,
    counting: str = "j = s32[] add(i, one)",
    first: int = 0,
    root: str = "ROOT next = {state} tuple(j, {ends}, z, k, tok)",
    init: str = "init = {state} tuple(begin, a, b, c, d, t0)",
) -> str:
    """A loop over buffers `x` and `y`, which become `ends`, an array `z`, a number and a token."""
    state = f"(s32[], {ELEMENTS})"
    return f"""HloModule m
sum {{ l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT add = f32[] add(l, r) }}
whole {{ l = s32[] parameter(0)  r = s32[] parameter(1)  ROOT add = s32[] add(l, r) }}
body {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4,8] get-tuple-element(p), index=1
  y = f32[4,8] get-tuple-element(p), index=2
  z = f32[4,8] get-tuple-element(p), index=3
  k = s32[] get-tuple-element(p), index=4
  tok = token[] get-tuple-element(p), index=5
  zero = s32[] constant(0)
  one = s32[] constant(1)
  two = s32[] constant(2)
  part = f32[1,8] dynamic-slice(z, i, zero), dynamic_slice_sizes={{1,8}}
  {body}
  {counting}
  {root.format(state=state, ends=ends)}
}}
condition {{
  q = {state} parameter(0)
  now = s32[] get-tuple-element(q), index=0
  n = s32[] constant({limit})
  ROOT less = pred[] compare(now, n), direction=LT
}}
ENTRY main {{
  a = f32[4,8] parameter(0)
  b = f32[4,8] parameter(1)
  c = f32[4,8] parameter(2)
  d = s32[] parameter(3)
  begin = s32[] constant({first})
  t0 = token[] after-all()
  {init.format(state=state)}
  w = {state} while(init), condition=condition, body=body
  x1 = f32[4,8] get-tuple-element(w), index=1
  y1 = f32[4,8] get-tuple-element(w), index=2
  ROOT result = tuple(x1, y1)
}}
"""


def reasons(text: str, **options: Any) -> list[str]:
    """The reasons of the remarks, without the words that all of them begin with."""
    begin = "not pipelined: "
    found = reasons_to_stay("collective-pipeliner", text, **options)
    assert all(reason.startswith(begin) for reason in found)
    return [reason.removeprefix(begin) for reason in found]


REDUCED = "ar = f32[1,8] all-reduce(part), to_apply=sum\n"
STORED = "stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)\n"
