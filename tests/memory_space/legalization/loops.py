"""Programs with values in host memory in loops."""

from __future__ import annotations

from tests.memory_space.legalization.notation import loop, program

LOOP_THAT_WRITES = loop(
    "<S>",
    """
  f = f32[] convert(i)
  x = <s> broadcast(f), dimensions={}
  h = <s> to_host(x)
  u = <S> dynamic-update-slice(b, h, i, z, z)
""",
    "u",
)
LOOP_THAT_READS = """
cond.2 {
  st = (s32[], <T>, <t>) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  k = s32[] constant(4)
  ROOT lt = pred[] compare(i, k), direction=LT
}

body.2 {
  st = (s32[], <T>, <t>) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  b = <T> get-tuple-element(st), index=1
  x = <t> get-tuple-element(st), index=2
  one = s32[] constant(1)
  z = s32[] constant(0)
  j = s32[] add(i, one)
  s = <t> dynamic-slice(b, i, z, z), dynamic_slice_sizes={1,8,16}
  r = <C> bitcast(s)
  d = <C> to_device(r)
  q = <t> bitcast(d)
  y = <t> add(x, q)
  ROOT t = (s32[], <T>, <t>) tuple(j, b, y)
}
"""

LOOPS = {
    "through a loop": program(
        """
  <copied>
  i = s32[] constant(0)
  t = (s32[], <C>) tuple(i, c)
  w = (s32[], <C>) while(t), condition=cond, body=body
  g = <C> get-tuple-element(w), index=1
  d = <C> to_device(g)
  ROOT n = <C> negate(d)
""",
        loop("<C>", "", "b"),
    ),
    "a loop that writes": program(
        """
  <loop's buffer>
  c = <T> copy(buf)
  t = (s32[], <T>) tuple(i, c)
  w = (s32[], <T>) while(t), condition=cond, body=body
  g = <T> get-tuple-element(w), index=1
  s = <t> dynamic-slice(g, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  ROOT n = <t> negate(d)
""",
        loop(
            "<T>",
            """
  f = f32[] convert(i)
  x = <t> broadcast(f), dimensions={}
  h = <t> to_host(x)
  u = <T> dynamic-update-slice(b, h, i, z, z)
""",
            "u",
        ),
    ),
    "a copy behind a loop that writes": program(
        """
  <loop's buffer>
  t = (s32[], <S>) tuple(i, buf)
  w = (s32[], <S>) while(t), condition=cond, body=body
  g = <S> get-tuple-element(w), index=1
  c = <T> copy(g)
  <slice brought back>
""",
        loop(
            "<S>",
            """
  f = f32[] convert(i)
  x = <s> broadcast(f), dimensions={}
  h = <s> to_host(x)
  u = <S> dynamic-update-slice(b, h, i, z, z)
""",
            "u",
        ),
    ),
    "copies in a loop": program(
        """
  <loop's buffer>
  t = (s32[], <S>) tuple(i, buf)
  w = (s32[], <S>) while(t), condition=cond, body=body
  g = <S> get-tuple-element(w), index=1
  s = <s> dynamic-slice(g, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <s> to_device(s)
  ROOT n = <s> negate(d)
""",
        loop(
            "<S>",
            """
  f = f32[] convert(i)
  x = <t> broadcast(f), dimensions={}
  h = <t> to_host(x)
  bc = <T> copy(b)
  u = <T> dynamic-update-slice(bc, h, i, z, z)
  uc = <S> copy(u)
""",
            "uc",
        ),
    ),
    "a loop that reads a parameter": program(
        """
  a = <S> parameter(0)
  i = s32[] constant(0)
  x0 = f32[] constant(0)
  x = <t> broadcast(x0), dimensions={}
  c = <T> copy(a)
  t = (s32[], <T>, <t>) tuple(i, c, x)
  w = (s32[], <T>, <t>) while(t), condition=cond, body=body
  ROOT g = <t> get-tuple-element(w), index=2
""",
        """
cond {
  st = (s32[], <T>, <t>) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  k = s32[] constant(4)
  ROOT lt = pred[] compare(i, k), direction=LT
}

body {
  st = (s32[], <T>, <t>) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  b = <T> get-tuple-element(st), index=1
  x = <t> get-tuple-element(st), index=2
  one = s32[] constant(1)
  z = s32[] constant(0)
  j = s32[] add(i, one)
  s = <t> dynamic-slice(b, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  y = <t> add(x, d)
  ROOT t = (s32[], <T>, <t>) tuple(j, b, y)
}
""",
        layout="(f32[4,8,16]{2,1,0:S(5)})->f32[1,8,16]{1,2,0}",
    ),
    "in a loop": program(
        """
  i = s32[] constant(0)
  a = <R> parameter(0)
  t = (s32[], <R>) tuple(i, a)
  w = (s32[], <R>) while(t), condition=cond, body=body
  ROOT g = <R> get-tuple-element(w), index=1
""",
        loop(
            "<R>",
            """
  h = <R> to_host(b)
  c = <C> copy(h)
  d = <C> to_device(c)
  n = <C> negate(d)
  r = <R> copy(n)
""",
            "r",
        ),
    ),
    "a loop that writes and a loop that reads": program(
        """
  i = s32[] constant(0)
  zero = f32[] constant(0)
  buf = <S> broadcast(zero), dimensions={}
  t = (s32[], <S>) tuple(i, buf)
  w = (s32[], <S>) while(t), condition=cond, body=body
  g = <S> get-tuple-element(w), index=1
  c = <T> copy(g)
  x = <t> broadcast(zero), dimensions={}
  t.2 = (s32[], <T>, <t>) tuple(i, c, x)
  w.2 = (s32[], <T>, <t>) while(t.2), condition=cond.2, body=body.2
  ROOT r = <t> get-tuple-element(w.2), index=2
""",
        LOOP_THAT_WRITES + LOOP_THAT_READS,
    ),
    "a body of two loops": program(
        """
  <copied>
  i = s32[] constant(0)
  t = (s32[], <C>) tuple(i, c)
  w = (s32[], <C>) while(t), condition=cond, body=body
  g = <C> get-tuple-element(w), index=1
  d = <C> to_device(g)
  a.2 = <C> copy(a)
  t.2 = (s32[], <C>) tuple(i, a.2)
  w.2 = (s32[], <C>) while(t.2), condition=cond, body=body
  g.2 = <C> get-tuple-element(w.2), index=1
  ROOT n = <C> add(d, g.2)
""",
        loop("<C>", "", "b"),
    ),
    "a loop that swaps parts of a tuple": program(
        """
  <copied>
  t = (<C>, <C>) tuple(c, c)
  i = s32[] constant(0)
  tt = (s32[], (<C>, <C>)) tuple(i, t)
  w = (s32[], (<C>, <C>)) while(tt), condition=cond, body=body
  gt = (<C>, <C>) get-tuple-element(w), index=1
  g = <C> get-tuple-element(gt), index=0
  d = <C> to_device(g)
  ROOT n = <C> negate(d)
""",
        loop(
            "(<C>, <C>)",
            """
  b0 = <C> get-tuple-element(b), index=0
  b1 = <C> get-tuple-element(b), index=1
  b2 = (<C>, <C>) tuple(b1, b0)
""",
            "b2",
        ),
    ),
    "a loop that swaps": program(
        """
  <copied>
  k = <R> to_host(a)
  e = <C> copy(k)
  i = s32[] constant(0)
  tt = (s32[], <C>, <C>) tuple(i, c, e)
  w = (s32[], <C>, <C>) while(tt), condition=cond, body=body
  g = <C> get-tuple-element(w), index=1
  d = <C> to_device(g)
  ROOT n = <C> negate(d)
""",
        """
cond {
  st = (s32[], <C>, <C>) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  k = s32[] constant(4)
  ROOT lt = pred[] compare(i, k), direction=LT
}

body {
  st = (s32[], <C>, <C>) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  b = <C> get-tuple-element(st), index=1
  x = <C> get-tuple-element(st), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], <C>, <C>) tuple(j, x, b)
}
""",
    ),
}
