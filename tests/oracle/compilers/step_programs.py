"""Programs whose steps through XLA:GPU's pipelines show which options its passes have."""

from __future__ import annotations

_SUM = """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""


def _program(entry: str, before: str = "") -> str:
    return f"HloModule m\n{before}\nENTRY e {{{entry}}}\n"


def _two_dots(size: int) -> str:
    shape = f"f32[{size},{size}]{{1,0}}"
    numbers = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    return _program(f"""
  x = {shape} parameter(0)
  y = {shape} parameter(1)
  z = {shape} parameter(2)
  d = {shape} dot(x, y), {numbers}
  f = {shape} dot(x, z), {numbers}
  ROOT t = ({shape}, {shape}) tuple(d, f)
""")


PROGRAMS = {
    "batch-norm-training": _program("""
  x = f32[4,8,3]{2,1,0} parameter(0)
  s = f32[3]{0} parameter(1)
  o = f32[3]{0} parameter(2)
  ROOT b = (f32[4,8,3]{2,1,0}, f32[3]{0}, f32[3]{0}) batch-norm-training(x, s, o),
    epsilon=0.001, feature_index=2
"""),
    "batch-norm-inference": _program("""
  x = f32[4,8,3]{2,1,0} parameter(0)
  s = f32[3]{0} parameter(1)
  o = f32[3]{0} parameter(2)
  m = f32[3]{0} parameter(3)
  v = f32[3]{0} parameter(4)
  ROOT b = f32[4,8,3]{2,1,0} batch-norm-inference(x, s, o, m, v), epsilon=0.001, feature_index=2
"""),
    "batch-norm-grad": _program("""
  x = f32[4,8,3]{2,1,0} parameter(0)
  s = f32[3]{0} parameter(1)
  m = f32[3]{0} parameter(2)
  v = f32[3]{0} parameter(3)
  g = f32[4,8,3]{2,1,0} parameter(4)
  ROOT b = (f32[4,8,3]{2,1,0}, f32[3]{0}, f32[3]{0}) batch-norm-grad(x, s, m, v, g),
    epsilon=0.001, feature_index=2
"""),
    "a reshaped broadcast of a vector": _program("""
  x = f32[8]{0} parameter(0)
  b = f32[8,4]{1,0} broadcast(x), dimensions={0}
  y = f32[4,8]{1,0} parameter(1)
  r = f32[8,4]{1,0} reshape(y)
  ROOT m = f32[8,4]{1,0} multiply(b, r)
"""),
    "dots of 64 MiB": _two_dots(2364),
    "larger dots": _two_dots(2366),
    "a transposed dot": _program("""
  p = f32[128,64]{1,0} parameter(0)
  q = f32[32,64]{1,0} parameter(1)
  t = f32[64,32]{1,0} transpose(q), dimensions={1,0}
  ROOT d = f32[128,32]{1,0} dot(p, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""),
    "a transposed convolution": _program("""
  p = f32[3,8,8,2]{3,2,1,0} parameter(0)
  k = f32[3,3,3,4]{3,2,1,0} parameter(1)
  t = f32[2,8,8,3]{3,2,1,0} transpose(p), dimensions={3,1,2,0}
  ROOT c = f32[2,6,6,4]{3,2,1,0} convolution(t, k), window={size=3x3}, dim_labels=b01f_01io->b01f
"""),
    "a conditional on a number": _program(
        """
  x = f32[8]{0} parameter(0)
  p = pred[] parameter(1)
  i = s32[] convert(p)
  ROOT c = f32[8]{0} conditional(i, x, x), branch_computations={first, second}
""",
        """
first {
  x = f32[8]{0} parameter(0)
  ROOT s = f32[8]{0} sine(x)
}

second {
  x = f32[8]{0} parameter(0)
  ROOT s = f32[8]{0} tanh(x)
}
""",
    ),
    "a sum of pieces": _program(
        """
  x = f32[8,4]{1,0} parameter(0)
  y = f32[8,5]{1,0} parameter(1)
  c = f32[8,9]{1,0} concatenate(x, y), dimensions={1}
  z = f32[] constant(0)
  ROOT r = f32[8]{0} reduce(c, z), dimensions={1}, to_apply=add
""",
        _SUM,
    ),
    "sums of a long vector": _program(
        """
  x = f32[16]{0} parameter(0)
  z = f32[] constant(0)
  ROOT w = f32[16]{0} reduce-window(x, z), window={size=16 pad=15_0}, to_apply=add
""",
        _SUM,
    ),
    "a gather of one row and of several": _program("""
  x = f32[8,4]{1,0} parameter(0)
  i = s32[1]{0} parameter(1)
  j = s32[5]{0} parameter(2)
  g = f32[4]{0} gather(x, i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=0, slice_sizes={1,4}
  h = f32[5,4]{1,0} gather(x, j), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,4}
  ROOT t = (f32[4]{0}, f32[5,4]{1,0}) tuple(g, h)
"""),
    "a scatter of one row and of several": _program(
        """
  x = f32[8,4]{1,0} parameter(0)
  i = s32[1]{0} parameter(1)
  j = s32[5]{0} parameter(2)
  u = f32[4]{0} parameter(3)
  v = f32[5,4]{1,0} parameter(4)
  g = f32[8,4]{1,0} scatter(x, i, u), to_apply=add, update_window_dims={0},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0
  h = f32[8,4]{1,0} scatter(x, j, v), to_apply=add, update_window_dims={1},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1
  ROOT t = (f32[8,4]{1,0}, f32[8,4]{1,0}) tuple(g, h)
""",
        _SUM,
    ),
    "a constant for a loop": _program(
        """
  i = s32[] constant(0)
  a = f32[8]{0} parameter(0)
  c = f32[] constant(3)
  b = f32[8]{0} broadcast(c), dimensions={}
  t = (s32[], f32[8]{0}, f32[8]{0}, f32[]) tuple(i, a, b, c)
  w = (s32[], f32[8]{0}, f32[8]{0}, f32[]) while(t), condition=cond, body=body
  ROOT g = f32[8]{0} get-tuple-element(w), index=1
""",
        """
cond {
  s = (s32[], f32[8]{0}, f32[8]{0}, f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(4)
  ROOT lt = pred[] compare(i, k), direction=LT
}

body {
  s = (s32[], f32[8]{0}, f32[8]{0}, f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8]{0} get-tuple-element(s), index=1
  b = f32[8]{0} get-tuple-element(s), index=2
  c = f32[] get-tuple-element(s), index=3
  cb = f32[8]{0} broadcast(c), dimensions={}
  m = f32[8]{0} multiply(a, b)
  n = f32[8]{0} add(m, cb)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[8]{0}, f32[8]{0}, f32[]) tuple(j, n, b, c)
}
""",
    ),
    "bf16 from end to end": _program("""
  x = bf16[8,8]{1,0} parameter(0)
  d = bf16[8,8]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = bf16[8,8]{1,0} sine(d)
"""),
    "a converted all-reduce": "HloModule m, replica_count=2\n"
    + """
add {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT c = bf16[] add(a, b)
}

ENTRY e {
  x = bf16[8]{0} parameter(0)
  y = bf16[8]{0} parameter(1)
  p = bf16[8]{0} all-reduce(x), replica_groups={}, to_apply=add
  q = bf16[8]{0} all-reduce(y), replica_groups={}, to_apply=add
  r = f32[8]{0} convert(p)
  s = f32[8]{0} convert(q)
  ROOT t = f32[8]{0} add(r, s)
}
""",
}
