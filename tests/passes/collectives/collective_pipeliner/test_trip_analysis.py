"""Loops that XLA's pass takes, of those whose trips are proved: as its compiler answered."""

from __future__ import annotations

import pytest

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

TEXT = """HloModule m, num_partitions=2
sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
body {{
  s = (s32[], f32[4,8], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4,8] get-tuple-element(s), index=1
  y = f32[4,8] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  three = s32[] constant(3)
  at = s32[] {index}
  d = f32[1,8] dynamic-slice(y, at, zero), dynamic_slice_sizes={{1,8}}
  r = f32[1,8] all-reduce(d), replica_groups={{}}, to_apply=sum
  u = f32[4,8] dynamic-update-slice(x, r, at, zero)
  step = s32[] constant({step})
  n = s32[] add(i, step)
  ROOT t = (s32[], f32[4,8], f32[4,8]) tuple(n, u, y)
}}
condition {{
  s = (s32[], f32[4,8], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  b = s32[] constant({limit})
  ROOT c = pred[] compare(i, b), direction={direction}
}}
ENTRY e {{
  f = s32[] constant({first})
  x = f32[4,8] parameter(0)
  y = f32[4,8] parameter(1)
  t = (s32[], f32[4,8], f32[4,8]) tuple(f, x, y)
  ROOT w = (s32[], f32[4,8], f32[4,8]) while(t), condition=condition, body=body
}}
"""
UP, DOWN = (0, 1, 4, "LT"), (3, -1, -1, "GT")
ITSELF, SUM, DIFFERENCE = "negate(i)", "add(i, zero)", "subtract(three, i)"
NOT_KNOWN = "compares its counter in a way that XLA's pass does not know (trip_analysis=xla)"
ONE_TRIP = "makes one trip by XLA's count, two are needed (trip_analysis=xla)"


@pytest.mark.parametrize(
    ("loop", "index", "reason"),
    [
        (UP, ITSELF, None),
        (UP, SUM, None),
        (UP, DIFFERENCE, None),
        ((0, 1, 3, "LE"), SUM, None),
        ((0, 2, 3, "LE"), SUM, None),
        ((3, -1, 0, "GE"), ITSELF, None),
        (DOWN, ITSELF, None),
        (DOWN, SUM, "index"),
        (DOWN, DIFFERENCE, "index"),
        ((0, 1, 4, "NE"), SUM, NOT_KNOWN),
        ((0, 1, 1, "LE"), SUM, ONE_TRIP),
        ((0, 2, 2, "LE"), SUM, ONE_TRIP),
        ((1, -1, 0, "GE"), ITSELF, ONE_TRIP),
    ],
)
def test_loops_that_xla_leaves_alone_stay_if_asked(
    loop: tuple[int, int, int, str], index: str, reason: str | None
) -> None:
    first, step, limit, direction = loop
    text = TEXT.format(first=first, step=step, limit=limit, direction=direction, index=index)
    for analysis in ("proved", "xla"):
        context = PassContext()
        options = {"should_process": ("all-reduce",), "trip_analysis": analysis}
        changed = create_pass("collective-pipeliner", options).run(parse_module(text), context)
        assert changed == (analysis == "proved" or reason is None)
        if not changed:
            assert reason is not None
            assert any(reason in remark.reason for remark in context.remarks)
