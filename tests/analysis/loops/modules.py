"""Modules with loops."""

from __future__ import annotations

NESTED = """HloModule m
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
called { x = f32[4] parameter(0) ROOT g = f32[4] all-reduce(x), to_apply=sum }
inner_body {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[4] all-reduce(x), to_apply=sum
  ROOT t = (s32[], f32[4]) tuple(next, y)
}
inner_condition {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  two = s32[] constant(2)
  next = s32[] add(i, two)
  zero = s32[] constant(0)
  y = f32[4] call(x), to_apply=called
  state = (s32[], f32[4]) tuple(zero, y)
  inner = (s32[], f32[4]) while(state), condition=inner_condition, body=inner_body,
    metadata={op_name="jit(f)/inner"}
  z = f32[4] get-tuple-element(inner), index=1
  ROOT t = (s32[], f32[4]) tuple(next, z)
}
condition {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[4] parameter(0)
  first = s32[] constant(3)
  state = (s32[], f32[4]) tuple(first, x)
  ROOT outer = (s32[], f32[4]) while(state), condition=condition, body=body,
    backend_config={"known_trip_count":{"n":"4"}}
}
"""
"""A loop of 4 trips, and in it one of 5."""
