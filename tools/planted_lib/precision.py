"""Passes over precision, block-scaled products and conditionals: miscompiles, right rewrites."""

from __future__ import annotations

from planted_lib.cases import by_passes, case, entry, unary

_BRANCHES = """HloModule m

waves {
  x = f32[8]{0} parameter(0)
  s = f32[8]{0} sine(x)
  ROOT n = f32[8]{0} negate(s)
}

others {
  y = f32[8]{0} parameter(0)
  c = f32[8]{0} cosine(y)
  ROOT m = f32[8]{0} negate(c)
}

ENTRY e {
  f = pred[] parameter(0)
  p = f32[8]{0} parameter(1)
  q = f32[8]{0} parameter(2)
  t = f32[8]{0} conditional(f, p, q), true_computation=waves, false_computation=others
  ROOT r = f32[8]{0} abs(t)
}
"""
_NARROW_SUM = entry(
    "p = bf16[64]{0} parameter(0)",
    "q = bf16[64]{0} parameter(1)",
    "ROOT r = bf16[64]{0} subtract(p, q)",
)
_NIBBLES = entry(
    "p = s4[64]{0} parameter(0)",
    "n = s4[64]{0} negate(p)",
    "ROOT r = s32[64]{0} convert(n)",
)
_TWO_READERS = unary(
    "x = f32[64]{0} sine(p)",
    "n = bf16[64]{0} convert(x)",
    "w = f32[64]{0} copy(x)",
    "ROOT r = (bf16[64]{0}, f32[64]{0}) tuple(n, w)",
)
_POSITIONS = entry(
    "x = f32[1000]{0} iota(), iota_dimension=0",
    "n = bf16[1000]{0} convert(x)",
    "i = s32[1000]{0} convert(x)",
    "ROOT r = (bf16[1000]{0}, s32[1000]{0}) tuple(n, i)",
)
_TWO_SUMS = entry(
    "p = bf16[8]{0} parameter(0)",
    "q = bf16[8]{0} parameter(1)",
    "a = f32[8]{0} convert(p)",
    "b = f32[8]{0} convert(q)",
    "s = (f32[8]{0}, f32[8]{0}) all-reduce(a, b), replica_groups={{0,1}}, to_apply=wide",
    "c = f32[8]{0} get-tuple-element(s), index=0",
    "d = f32[8]{0} get-tuple-element(s), index=1",
    "e1 = bf16[8]{0} convert(c)",
    "e2 = bf16[8]{0} convert(d)",
    "ROOT r = (bf16[8]{0}, bf16[8]{0}) tuple(e1, e2)",
    before="wide {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
    "  ROOT z = f32[] add(x, y)\n}\n\n",
    header=", replica_count=2",
)
_WHOLE_NUMBERS = unary(
    "f = f32[] constant(4)",
    "fs = f32[64]{0} broadcast(f), dimensions={}",
    "x = f32[64]{0} multiply(p, fs)",
    "i = s32[64]{0} convert(x)",
    "ROOT r = f32[64]{0} convert(i)",
)
_BLOCKS = entry(
    "x = f8e4m3fn[4,64]{1,0} parameter(0)",
    "w = bf16[64,8]{1,0} parameter(1)",
    "s = f8e8m0fnu[4,2]{1,0} parameter(2)",
    "o = bf16[1,1]{1,0} constant({{1}})",
    "ROOT r = f32[4,8]{1,0} scaled-dot(x, w, s, o), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
)
_BLOCKS_DONE = (
    "xf = f32[4,64]{{1,0}} convert(x)\n"
    "  sf = f32[4,2]{{1,0}} convert({scales})\n"
    "  sb = f32[4,{blocks}]{{2,1,0}} broadcast(sf), dimensions={{{dimensions}}}\n"
    "  ss = f32[4,64]{{1,0}} reshape(sb)\n"
    "  xs = f32[4,64]{{1,0}} multiply(xf, ss)\n"
    "  wf = f32[64,8]{{1,0}} convert(w)\n"
    "  ROOT r = f32[4,8]{{1,0}} dot(xs, wf)"
)
_DEQUANTIZE = entry(
    "x = f8e4m3fn[4,64]{1,0} parameter(0)",
    "s = f8e8m0fnu[4,2]{1,0} parameter(1)",
    'ROOT r = f32[4,64]{1,0} custom-call(x, s), custom_call_target="__op$dequantize"',
)
_COMPOSITE = (
    """HloModule m

product {
  a = f8e4m3fn[4,64]{1,0} parameter(0)
  b = f8e4m3fn[64,4]{1,0} parameter(1)
  s = f8e8m0fnu[4,2]{1,0} parameter(2)
  t = f8e8m0fnu[2,4]{1,0} parameter(3)
  wide = f32[4,64]{1,0} convert(a)
  scale = f32[4,2]{1,0} convert(s)
  blocks = f32[4,2,32]{2,1,0} broadcast(scale), dimensions={0,1}
  factors = f32[4,64]{1,0} reshape(blocks)
  left = f32[4,64]{1,0} multiply(wide, factors)
  wide2 = f32[64,4]{1,0} convert(b)
  scale2 = f32[2,4]{1,0} convert(t)
  blocks2 = f32[2,32,4]{2,1,0} broadcast(scale2), dimensions={0,2}
  factors2 = f32[64,4]{1,0} reshape(blocks2)
  right = f32[64,4]{1,0} multiply(wide2, factors2)
  ROOT d = f32[4,4]{1,0} dot(left, right), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY e {
  x = f8e4m3fn[4,64]{1,0} parameter(0)
  w = f8e4m3fn[64,4]{1,0} parameter(1)
  xs = f8e8m0fnu[4,2]{1,0} parameter(2)
  ws = f8e8m0fnu[2,4]{1,0} parameter(3)
"""
    "  ROOT r = f32[4,4]{1,0} call(x, w, xs, ws), to_apply=product, is_composite=true, "
    'frontend_attributes={composite.attributes="{dimension_numbers = [[[1], [0]], [[], []]]}",'
    'composite.name="xla.scaled_dot"}\n}\n'
)
_CALL = _COMPOSITE[_COMPOSITE.index("call(x, w") : _COMPOSITE.rindex("\n}")]

MISCOMPILES_OF_PRECISION = (
    case(
        "operation moved out of one branch and left in the other",
        _BRANCHES,
        "ROOT m = f32[8]{0} negate(c)",
        "ROOT m = f32[8]{0} copy(c)",
        "ROOT r = f32[8]{0} abs(t)",
        "k = f32[8]{0} negate(t)\n  a = f32[8]{0} abs(t)\n  ROOT r = f32[8]{0} multiply(k, a)",
    ),
    case(
        "operation moved into one of two branches",
        _BRANCHES,
        "ROOT n = f32[8]{0} negate(s)",
        "n = f32[8]{0} negate(s)\n  ROOT o = f32[8]{0} abs(n)",
        "ROOT r = f32[8]{0} abs(t)",
        "ROOT r = f32[8]{0} copy(t)",
    ),
    case(
        "one operand converted in place of two",
        _NARROW_SUM,
        "ROOT r = bf16[64]{0} subtract(p, q)",
        "a = f32[64]{0} convert(p)\n  b = f32[64]{0} convert(p)\n"
        "  s = f32[64]{0} subtract(a, b)\n  ROOT r = bf16[64]{0} convert(s)",
        preserves="precision",
    ),
    case(
        "operand converted by way of a narrower type",
        _NARROW_SUM,
        "ROOT r = bf16[64]{0} subtract(p, q)",
        "n = f8e5m2[64]{0} convert(p)\n  a = f32[64]{0} convert(n)\n"
        "  b = f32[64]{0} convert(q)\n"
        "  s = f32[64]{0} subtract(a, b)\n  ROOT r = bf16[64]{0} convert(s)",
        preserves="precision",
    ),
    case(
        "numbers of four bits without their sign",
        _NIBBLES,
        "ROOT r = s32[64]{0} convert(n)",
        "u = u4[64]{0} bitcast-convert(n)\n  ROOT r = s32[64]{0} convert(u)",
        preserves="precision",
    ),
    case(
        "value rounded for a reader that needs all of it",
        _TWO_READERS,
        "n = bf16[64]{0} convert(x)",
        "n = bf16[64]{0} convert(x)\n  v = f32[64]{0} convert(n)",
        "w = f32[64]{0} copy(x)",
        "w = f32[64]{0} copy(v)",
        preserves="precision",
    ),
    case(
        "positions rounded to a narrow type",
        _POSITIONS,
        "i = s32[1000]{0} convert(x)",
        "i = s32[1000]{0} convert(n)",
        preserves="precision",
    ),
    case(
        "elements of a folded all-reduce mixed up",
        _TWO_SUMS,
        "d = f32[8]{0} get-tuple-element(s), index=1",
        "d = f32[8]{0} get-tuple-element(s), index=0",
        preserves="precision",
    ),
    case(
        "converts to whole numbers and back removed",
        _WHOLE_NUMBERS,
        "ROOT r = f32[64]{0} convert(i)",
        "ROOT r = f32[64]{0} copy(x)",
        preserves="precision",
    ),
    case(
        "scales of the wrong blocks",
        _BLOCKS,
        "ROOT r = f32[4,8]{1,0} scaled-dot(x, w, s, o)",
        _BLOCKS_DONE.format(scales="s", blocks="32,2", dimensions="0,2"),
        preserves="rounding",
    ),
    case(
        "product without the scales of a side",
        _BLOCKS,
        "ROOT r = f32[4,8]{1,0} scaled-dot(x, w, s, o)",
        "xf = f32[4,64]{1,0} convert(x)\n  wf = f32[64,8]{1,0} convert(w)\n"
        "  ROOT r = f32[4,8]{1,0} dot(xf, wf)",
        preserves="rounding",
    ),
    case(
        "values divided by their scales",
        _DEQUANTIZE,
        'ROOT r = f32[4,64]{1,0} custom-call(x, s), custom_call_target="__op$dequantize"',
        "xf = f32[4,64]{1,0} convert(x)\n  sf = f32[4,2]{1,0} convert(s)\n"
        "  sb = f32[4,2,32]{2,1,0} broadcast(sf), dimensions={0,1}\n"
        "  ss = f32[4,64]{1,0} reshape(sb)\n"
        "  ROOT r = f32[4,64]{1,0} divide(xf, ss)",
        preserves="rounding",
    ),
    case(
        "scales of a composite exchanged",
        _COMPOSITE,
        _CALL,
        "scaled-dot(x, w, ys, vs), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "  ws = f8e8m0fnu[2,4]{1,0} parameter(3)\n",
        "  ws = f8e8m0fnu[2,4]{1,0} parameter(3)\n"
        "  ys = f8e8m0fnu[4,2]{1,0} transpose(ws), dimensions={1,0}\n"
        "  vs = f8e8m0fnu[2,4]{1,0} transpose(xs), dimensions={1,0}\n",
        preserves="rounding",
    ),
)

REWRITES_OF_PRECISION = (
    by_passes("operations moved out of branches", _BRANCHES, "conditional-code-motion"),
    by_passes("narrow numbers computed in wide ones", _NARROW_SUM, "float-normalization-bf16"),
    by_passes("numbers of four bits computed in bytes", _NIBBLES, "float-normalization-s4"),
    by_passes(
        "converts folded into an all-reduce",
        _TWO_SUMS,
        "bfloat16-conversion-folding{float_support={operand=true,output=true,mixed=true}}",
    ),
    by_passes("scales multiplied into a side", _BLOCKS, "scaled-dot-rewriter"),
    by_passes("block-scaled values expanded", _DEQUANTIZE, "block-scaling-rewriter"),
    by_passes("a composite as a scaled-dot", _COMPOSITE, "composite-rewriter"),
)
