"""Programs with a loop that stacks up residuals and one that reads them, whole or with changes."""

from __future__ import annotations

PASS = "while-loop-residual-offloader"

_ONE = "(s32[], f32[8]{0}, f32[4,8]{1,0})"
_TWO = "(s32[], f32[8]{0}, f32[4,8]{1,0}, f32[4,8]{1,0})"
"""The states of loops: a counter, a row, and one stack or two."""


def _loop(name: str, state: str, steps: str, results: str) -> str:
    """The body of a loop of four trips, whose counter is `i`, and its condition."""
    return f"""
{name} {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
{steps}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = {state} tuple(next, {results})
}}

{name}_condition {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  trips = s32[] constant(4)
  ROOT go = pred[] compare(i, trips), direction=LT
}}
"""


UNFUSED = (
    "HloModule m\n"
    + _loop(
        "forward",
        _ONE,
        """  x = f32[8]{0} get-tuple-element(s), index=1
  stack = f32[4,8]{1,0} get-tuple-element(s), index=2
  row = f32[1,8]{1,0} reshape(x)
  zero = s32[] constant(0)
  written = f32[4,8]{1,0} dynamic-update-slice(stack, row, i, zero)
  sine = f32[8]{0} sine(x)""",
        "sine, written",
    )
    + _loop(
        "backward",
        _ONE,
        """  g = f32[8]{0} get-tuple-element(s), index=1
  stack = f32[4,8]{1,0} get-tuple-element(s), index=2
  last = s32[] constant(3)
  place = s32[] subtract(last, i)
  zero = s32[] constant(0)
  row = f32[1,8]{1,0} dynamic-slice(stack, place, zero), dynamic_slice_sizes={1,8}
  residual = f32[8]{0} reshape(row)
  product = f32[8]{0} multiply(g, residual)""",
        "product, stack",
    )
    + """
ENTRY main {
  x = f32[8]{0} parameter(0)
  first = s32[] constant(0)
  seven = f32[] constant(7)
  fill = f32[4,8]{1,0} broadcast(seven), dimensions={}
  init = (s32[], f32[8]{0}, f32[4,8]{1,0}) tuple(first, x, fill)
  loop = (s32[], f32[8]{0}, f32[4,8]{1,0}) while(init),
    condition=forward_condition, body=forward
  y = f32[8]{0} get-tuple-element(loop), index=1
  residuals = f32[4,8]{1,0} get-tuple-element(loop), index=2
  state = (s32[], f32[8]{0}, f32[4,8]{1,0}) tuple(first, y, residuals)
  gradients = (s32[], f32[8]{0}, f32[4,8]{1,0}) while(state),
    condition=backward_condition, body=backward
  ROOT r = f32[8]{0} get-tuple-element(gradients), index=1
}
"""
)
"""A loop writes a row in each trip, unfused; another one reads the rows again, last one first."""

FUSED = (
    """HloModule m

fused_broadcast {
  seven = f32[] constant(7)
  a = f32[4,8]{1,0} broadcast(seven), dimensions={}
  b = f32[4,8]{1,0} broadcast(seven), dimensions={}
  ROOT t = (f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(a, b)
}

fused_update {
  stack = f32[4,8]{1,0} parameter(0)
  x = f32[8]{0} parameter(1)
  i = s32[] parameter(2)
  sine = f32[8]{0} sine(x)
  row = f32[1,8]{1,0} bitcast(sine)
  zero = s32[] constant(0)
  wraps = pred[] compare(i, zero), direction=LT
  trips = s32[] constant(4)
  wrapped = s32[] add(i, trips)
  place = s32[] select(wraps, wrapped, i)
  ROOT written = f32[4,8]{1,0} dynamic-update-slice(stack, row, place, zero)
}

fused_store {
  stack = f32[4,8]{1,0} parameter(0)
  x = f32[8]{0} parameter(1)
  i = s32[] parameter(2)
  row = f32[1,8]{1,0} bitcast(x)
  zero = s32[] constant(0)
  ROOT written = f32[4,8]{1,0} dynamic-update-slice(stack, row, i, zero)
}

fused_multiply {
  g = f32[8]{0} parameter(0)
  a = f32[4,8]{1,0} parameter(1)
  b = f32[4,8]{1,0} parameter(2)
  i = s32[] parameter(3)
  last = s32[] constant(3)
  place = s32[] subtract(last, i)
  zero = s32[] constant(0)
  row_a = f32[1,8]{1,0} dynamic-slice(a, place, zero), dynamic_slice_sizes={1,8}
  row_b = f32[1,8]{1,0} dynamic-slice(b, place, zero), dynamic_slice_sizes={1,8}
  sum = f32[1,8]{1,0} add(row_a, row_b)
  flat = f32[8]{0} bitcast(sum)
  ROOT product = f32[8]{0} multiply(g, flat)
}

fused_slice {
  a = f32[4,8]{1,0} parameter(0)
  i = s32[] parameter(1)
  last = s32[] constant(3)
  place = s32[] subtract(last, i)
  zero = s32[] constant(0)
  row = f32[1,8]{1,0} dynamic-slice(a, place, zero), dynamic_slice_sizes={1,8}
  ROOT flat = f32[8]{0} bitcast(row)
}
"""
    + _loop(
        "forward",
        _TWO,
        """  x = f32[8]{0} get-tuple-element(s), index=1
  a = f32[4,8]{1,0} get-tuple-element(s), index=2
  b = f32[4,8]{1,0} get-tuple-element(s), index=3
  updated = f32[4,8]{1,0} fusion(a, x, i), kind=kLoop, calls=fused_update
  stored = f32[4,8]{1,0} fusion(b, x, i), kind=kLoop, calls=fused_store
  cosine = f32[8]{0} cosine(x), control-predecessors={stored}""",
        "cosine, updated, stored",
    )
    + _loop(
        "backward",
        _TWO,
        """  g = f32[8]{0} get-tuple-element(s), index=1
  a = f32[4,8]{1,0} get-tuple-element(s), index=2
  b = f32[4,8]{1,0} get-tuple-element(s), index=3
  product = f32[8]{0} fusion(g, a, b, i), kind=kLoop, calls=fused_multiply
  again = f32[8]{0} fusion(a, i), kind=kLoop, calls=fused_slice, control-predecessors={product}
  sum = f32[8]{0} add(product, again)""",
        "sum, a, b",
    )
    + """
ENTRY main {
  x = f32[8]{0} parameter(0)
  first = s32[] constant(0)
  fills = (f32[4,8]{1,0}, f32[4,8]{1,0}) fusion(), kind=kLoop, calls=fused_broadcast
  fill_a = f32[4,8]{1,0} get-tuple-element(fills), index=0
  fill_b = f32[4,8]{1,0} get-tuple-element(fills), index=1
  init = (s32[], f32[8]{0}, f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(first, x, fill_a, fill_b)
  loop = (s32[], f32[8]{0}, f32[4,8]{1,0}, f32[4,8]{1,0}) while(init),
    condition=forward_condition, body=forward
  y = f32[8]{0} get-tuple-element(loop), index=1
  a = f32[4,8]{1,0} get-tuple-element(loop), index=2
  b = f32[4,8]{1,0} get-tuple-element(loop), index=3
  state = (s32[], f32[8]{0}, f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(first, y, a, b)
  gradients = (s32[], f32[8]{0}, f32[4,8]{1,0}, f32[4,8]{1,0}) while(state),
    condition=backward_condition, body=backward
  ROOT r = f32[8]{0} get-tuple-element(gradients), index=1
}
"""
)
"""Two stacks; fusions write and read their rows, two of them the same row."""


def changed(text: str, *changes: tuple[str, str]) -> str:
    """A program with some of its text replaced; each part has to be there once."""
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    return text


def copied(text: str, *computations: str) -> str:
    """A program with copies of some computations, NAME_2 and NAME_3; they call nothing."""
    blocks = [
        block.replace(f"{name} {{", f"{name}_{number} {{", 1)
        for name in computations
        for block in [text[text.index(f"\n{name} {{\n") :].split("\n}\n", 1)[0] + "\n}\n"]
        for number in (2, 3)
    ]
    return text.replace("HloModule m\n", "HloModule m\n" + "".join(blocks), 1)
