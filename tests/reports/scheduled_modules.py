"""Modules whose schedules have loops in loops, branches, calls and operations across them."""

from __future__ import annotations

from tests.simulation.programs import ADD


def loop(name: str, trips: int, body: str) -> str:
    """A counted loop over a value `x` of type f32[8]: `body` makes `y` of it."""
    state = "(s32[], f32[8])"
    return f"""
{name}_condition {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT less = pred[] compare(i, n), direction=LT
}}
{name}_body {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  {body}
  ROOT result = {state} tuple(next, y)
}}
"""


def run_loop(name: str, value: str) -> str:
    """Instructions that run a loop on a value; `NAME_out` is its result."""
    return f"""
  {name}_zero = s32[] constant(0)
  {name}_in = (s32[], f32[8]) tuple({name}_zero, {value})
  {name} = (s32[], f32[8]) while({name}_in), condition={name}_condition, body={name}_body
  {name}_out = f32[8] get-tuple-element({name}), index=1
"""


_REDUCE = """
  start = f32[8] all-reduce-start(x), replica_groups={}, to_apply=add
  work = f32[8] multiply(x, x), metadata={op_name="jit(f)/inner/multiply"}
  done = f32[8] all-reduce-done(start)
  y = f32[8] add(done, work), metadata={op_name="jit(f)/inner/add"}
"""


def nested(outer: int = 3, inner: int = 2) -> str:
    """A loop in a loop, a conditional, calls, and an operation that is in flight while the loops
    run, on the stream of those in the loops."""
    return f"""HloModule nested, is_scheduled=true, num_partitions=4
{ADD}
helper {{
  x = f32[8] parameter(0)
  ROOT sine = f32[8] sine(x), metadata={{op_name="jit(f)/helper/sine"}}
}}
last {{
  x = f32[8] parameter(0)
  ROOT cosine = f32[8] cosine(x)
}}
{loop("inner", inner, _REDUCE)}
{loop("outer", outer, run_loop("inner", "x") + "y = f32[8] call(inner_out), to_apply=helper")}
yes {{
  x = f32[8] parameter(0)
  a = f32[8] exponential(x)
  ROOT b = f32[8] tanh(a)
}}
no {{
  x = f32[8] parameter(0)
  ROOT c = f32[8] negate(x)
}}
ENTRY e {{
  p = f32[8] parameter(0)
  c = pred[] parameter(1)
  long = f32[8] all-reduce-start(p), replica_groups={{}}, to_apply=add
  {run_loop("outer", "p")}
  reduced = f32[8] all-reduce-done(long)
  chosen = f32[8] conditional(c, outer_out, reduced), true_computation=yes,
    false_computation=no
  called = f32[8] call(chosen), to_apply=last
  ROOT r = f32[8] add(called, reduced)
}}
"""
