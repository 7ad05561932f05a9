"""Modules with a finding that the fix of its rule takes on, where the example on the page has none.

Other examples are not scheduled, so that they have no times, or not of the kind that a pass is for.
"""

from __future__ import annotations

_SUM = """sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
"""

_LOOP = """test {
  q = STATE parameter(0)
  j = s32[] get-tuple-element(q), index=0
  limit = s32[] constant(8)
  ROOT less = pred[] compare(j, limit), direction=LT
}

ENTRY e {
  x = f32[4096,1024] parameter(0)
  w = f32[1024,1024] parameter(1)
  zero = s32[] constant(0)
  state = STATE tuple(zero, x, w)
  loop = STATE while(state), condition=test, body=body
  ROOT r = f32[4096,1024] get-tuple-element(loop), index=1
}
"""


def _loop(header: str, state: str, body: str) -> str:
    """A scheduled loop of eight trips over an array and a weight."""
    return f"HloModule m, is_scheduled=true{header}\n\n{body}\n{_LOOP}".replace("STATE", state)


_AROUND = """
work {
  p = f32[16777216] parameter(0)
  ROOT n = f32[16777216] negate(p)
}

ENTRY e {
  p = f32[262144] parameter(0)
  q = f32[16777216] parameter(1)
REDUCED
  other = f32[16777216] fusion(q), kind=kLoop, calls=work
  ROOT t = (f32[262144], f32[16777216]) tuple(reduced, other)
}
"""
_REPLICAS = "HloModule m, is_scheduled=true, replica_count=4\n\n"
_TO = "replica_groups={{0,1,2,3}}, to_apply=sum"

CASES = {
    "HLL001": (_REPLICAS + _SUM + _AROUND).replace(
        "REDUCED",
        f"  start = f32[262144] all-reduce-start(p), {_TO}\n"
        "  reduced = f32[262144] all-reduce-done(start)",
    ),
    "HLL002": (_REPLICAS + _SUM + _AROUND).replace(
        "REDUCED", f"  reduced = f32[262144] all-reduce(p), {_TO}"
    ),
    "HLL102": _loop(
        ", replica_count=4",
        "(s32[], f32[4096,1024], f32[1024,1024])",
        """body {
  p = STATE parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x.1 = f32[4096,1024] get-tuple-element(p), index=1
  w.1 = f32[1024,1024] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  whole = f32[4096,1024] all-gather(w.1), replica_groups={{0,1,2,3}}, dimensions={0}
  y = f32[4096,1024] add(x.1, whole)
  ROOT t = STATE tuple(next, y, w.1)
}
""",
    ),
    "HLL103": f"""{_REPLICAS}{_SUM}
work {{
  l = f32[4096,4096] parameter(0)
  ROOT n = f32[4096,4096] negate(l)
}}

body {{
  p = (s32[], f32[8,262144], f32[8,262144], f32[4096,4096]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  out = f32[8,262144] get-tuple-element(p), index=1
  in = f32[8,262144] get-tuple-element(p), index=2
  more = f32[4096,4096] get-tuple-element(p), index=3
  one = s32[] constant(1)
  next = s32[] add(i, one)
  zero = s32[] constant(0)
  x = f32[1,262144] dynamic-slice(in, i, zero), dynamic_slice_sizes={{1,262144}}
  r = f32[1,262144] all-reduce(x), {_TO}
  new = f32[8,262144] dynamic-update-slice(out, r, i, zero)
  other = f32[4096,4096] fusion(more), kind=kLoop, calls=work
  ROOT t = (s32[], f32[8,262144], f32[8,262144], f32[4096,4096]) tuple(next, new, in, other)
}}

test {{
  q = (s32[], f32[8,262144], f32[8,262144], f32[4096,4096]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  limit = s32[] constant(8)
  ROOT less = pred[] compare(j, limit), direction=LT
}}

ENTRY e {{
  out.1 = f32[8,262144] parameter(0)
  in.1 = f32[8,262144] parameter(1)
  more.1 = f32[4096,4096] parameter(2)
  zero.1 = s32[] constant(0)
  state = (s32[], f32[8,262144], f32[8,262144], f32[4096,4096]) tuple(zero.1, out.1, in.1, more.1)
  loop = (s32[], f32[8,262144], f32[8,262144], f32[4096,4096]) while(state), condition=test,
    body=body
  ROOT result = f32[8,262144] get-tuple-element(loop), index=1
}}
""",
    "HLL108": """HloModule m, is_scheduled=true, num_partitions=4

ENTRY e {
  p = f32[1024,512] parameter(0)
  whole = f32[4096,512] all-gather(p), replica_groups={{0,1,2,3}}, dimensions={0}, channel_id=1,
    use_global_device_ids=true
  id = u32[] partition-id()
  size = u32[] constant(1024)
  at = u32[] multiply(id, size)
  zero = u32[] constant(0)
  mine = f32[1024,512] dynamic-slice(whole, at, zero), dynamic_slice_sizes={1024,512}
  ROOT n = f32[1024,512] negate(mine)
}
""",
    "HLL113": f"""{_REPLICAS}{_SUM}
ENTRY e {{
  narrow = bf16[65536] parameter(0)
  p = f32[65536] convert(narrow)
  r = f32[65536] all-reduce(p), {_TO}
  ROOT n = bf16[65536] convert(r)
}}
""",
    "HLL402": f"""HloModule m, is_scheduled=true

ENTRY e {{
  p = f32[64] parameter(0)
  ones = f32[64] constant({{{", ".join(["1"] * 64)}}})
  ROOT r = f32[64] add(p, ones)
}}
""",
    "HLL404": """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[1024] parameter(0)
  q = f32[4194304] parameter(1)
  ROOT r = f32[1024] negate(p)
}
""",
    "HLL506": _loop(
        "",
        "(s32[], f32[4096,1024], f32[1024,1024])",
        """narrow {
  p = f32[1024,1024] parameter(0)
  ROOT c = bf16[1024,1024] convert(p)
}

multiply {
  l = f32[4096,1024] parameter(0)
  r = bf16[1024,1024] parameter(1)
  wide = f32[1024,1024] convert(r)
  ROOT d = f32[4096,1024] dot(l, wide), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

body {
  p.1 = STATE parameter(0)
  i = s32[] get-tuple-element(p.1), index=0
  x.1 = f32[4096,1024] get-tuple-element(p.1), index=1
  w.1 = f32[1024,1024] get-tuple-element(p.1), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = bf16[1024,1024] fusion(w.1), kind=kLoop, calls=narrow
  y = f32[4096,1024] fusion(x.1, v), kind=kOutput, calls=multiply
  ROOT t = STATE tuple(next, y, w.1)
}
""",
    ),
}
"""By the code of a rule."""
