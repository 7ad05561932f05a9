"""Rewrites that are right: by passes of ours, and by hand."""

from __future__ import annotations

from planted_lib.cases import (
    BRANCHES,
    CALLS,
    FOUR,
    LOOP,
    SENDING_BRANCH,
    SENDING_LOOP,
    SUM,
    TOKEN,
    P,
    Q,
    binary,
    by_passes,
    case,
    entry,
    unary,
)
from planted_lib.precision import REWRITES_OF_PRECISION

_DEAD = entry(
    P,
    Q,
    "n = f32[8]{0} divide(q, q)",
    "dead = f32[8]{0} log(n)",
    "a = f32[8]{0} add(p, q)",
    "b = f32[8]{0} add(p, q)",
    "ROOT r = f32[8]{0} multiply(a, b)",
)
_TAKEN = BRANCHES.replace("i = s32[] parameter(0)", "i = s32[] constant(1)").replace(
    "parameter(1)\n  ROOT r = f32[8]{0} conditional",
    "parameter(0)\n  ROOT r = f32[8]{0} conditional",
)
_SHARDED = entry(
    "p = f32[32]{0} parameter(0)",
    "a = f32[32]{0} all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, to_apply=sum",
    "t = s32[4]{0} constant({0, 8, 16, 24})",
    "d = u32[] partition-id()",
    "o = s32[1]{0} dynamic-slice(t, d), dynamic_slice_sizes={1}",
    "i = s32[] reshape(o)",
    "ROOT r = f32[8]{0} dynamic-slice(a, i), dynamic_slice_sizes={8}",
    before=SUM,
    header=FOUR,
)
_CONSTANTS = entry(
    P,
    "a = f32[] constant(3)",
    "b = f32[] constant(0.25)",
    "c = f32[] multiply(a, b)",
    "d = f32[8]{0} broadcast(c), dimensions={}",
    "ROOT r = f32[8]{0} add(p, d)",
)
_TWO_REDUCTIONS = entry(
    P,
    Q,
    "a = f32[8]{0} all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, to_apply=sum",
    "b = f32[8]{0} all-reduce(q), channel_id=2, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, to_apply=sum",
    "ROOT r = f32[8]{0} add(a, b)",
    before=SUM,
    header=FOUR,
)
_RESHAPED = entry(
    "p = f32[4,4]{1,0} parameter(0)",
    "q = f32[4,4]{1,0} parameter(1)",
    "a = f32[16]{0} reshape(p)",
    "b = f32[16]{0} reshape(q)",
    "c = f32[16]{0} add(a, b)",
    "d = f32[16]{0} exponential(c)",
    "ROOT r = f32[4,4]{1,0} reshape(d)",
)
_SUMMED = entry(
    "p = f32[64]{0} parameter(0)",
    "z = f32[] constant(0)",
    "ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=sum",
    before=SUM,
)
_SOFTMAX = entry(
    "p = f32[8,16]{1,0} parameter(0)",
    "z = f32[] constant(0)",
    "e = f32[8,16]{1,0} exponential(p)",
    "s = f32[8]{0} reduce(e, z), dimensions={1}, to_apply=sum",
    "b = f32[8,16]{1,0} broadcast(s), dimensions={0}",
    "ROOT r = f32[8,16]{1,0} divide(e, b)",
    before=SUM,
)
_NARROW = entry(
    "p = bf16[64]{0} parameter(0)",
    "q = bf16[64]{0} parameter(1)",
    "a = bf16[64]{0} add(p, q)",
    "ROOT r = bf16[64]{0} multiply(a, q)",
)
_DOT = entry(
    "p = f32[6,8]{1,0} parameter(0)",
    "q = f32[8,5]{1,0} parameter(1)",
    "ROOT r = f32[6,5]{1,0} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
)
_UNORDERED = entry(
    P,
    Q,
    'a = () custom-call(p), custom_call_target="log", custom_call_has_side_effect=true',
    'b = () custom-call(q), custom_call_target="log", custom_call_has_side_effect=true',
    "ROOT r = f32[8]{0} negate(p)",
)
_OUTFEEDS = entry(
    P,
    Q,
    TOKEN,
    "o = token[] outfeed(p, t)",
    "u = token[] outfeed(q, o)",
    "m = f32[8]{0} multiply(p, q)",
    "ROOT r = f32[8]{0} negate(m)",
)
_GATHERED = entry(
    P,
    "g = f32[32]{0} all-gather(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, dimensions={0}",
    "d = u32[] partition-id()",
    "i = s32[] convert(d)",
    "k = s32[] constant(8)",
    "o = s32[] multiply(i, k)",
    "ROOT r = f32[8]{0} dynamic-slice(g, o), dynamic_slice_sizes={8}",
    header=FOUR,
)
_FED_LOOP = LOOP.replace(
    "  y = f32[8]{0} add(x, halves)\n",
    "  k = token[] after-all()\n  f = (f32[8]{0}, token[]) infeed(k)\n"
    "  g = f32[8]{0} get-tuple-element(f), index=0\n  y = f32[8]{0} subtract(g, x)\n",
)
_INTS = "s32[64]{0}"
_ONCE = LOOP.replace("constant(10)", "constant(1)")

REWRITES = (
    # -- passes of ours
    by_passes("dead code with NaN, and the same twice", _DEAD, "dce,cse"),
    by_passes("calls inlined", CALLS, "call-inliner"),
    by_passes("a loop of one trip", _ONCE, "simplify-while-loops"),
    by_passes("copies in a loop that sends", SENDING_LOOP, "copy-insertion"),
    by_passes("a branch that is always taken", _TAKEN, "simplify-conditional"),
    by_passes("constants folded", _CONSTANTS, "constant-folding"),
    by_passes("all-reduces combined", _TWO_REDUCTIONS, "all-reduce-combiner"),
    by_passes("all-reduces reassociated", _TWO_REDUCTIONS, "all-reduce-reassociate"),
    by_passes("each device reduces its shard", _SHARDED, "reduce-scatter-creator"),
    by_passes("reshapes moved", _RESHAPED, "reshape-mover,algsimp"),
    by_passes("scheduled for memory", _OUTFEEDS, "hlo-memory-scheduler"),
    # -- numbers, up to rounding
    case(
        "sum in two halves",
        _SUMMED,
        "ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=sum",
        "a = f32[32]{0} slice(p), slice={[0:32]}\n  b = f32[32]{0} slice(p), slice={[32:64]}\n"
        "  c = f32[32]{0} add(a, b)\n  ROOT r = f32[] reduce(c, z), dimensions={0}, to_apply=sum",
        preserves="rounding",
    ),
    case(
        "sum in double precision",
        _SUMMED,
        "  z = f32[] constant(0)\n  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=sum",
        "  w = f64[64]{0} convert(p)\n  z = f64[] constant(0)\n"
        "  s = f64[] reduce(w, z), dimensions={0}, to_apply=wide\n  ROOT r = f32[] convert(s)",
        "ENTRY",
        "wide {\n  a = f64[] parameter(0)\n  b = f64[] parameter(1)\n"
        "  ROOT s = f64[] add(a, b)\n}\n\nENTRY",
        preserves="rounding",
    ),
    case(
        "three numbers in another order",
        entry(
            P,
            Q,
            "s = f32[8]{0} parameter(2)",
            "a = f32[8]{0} add(p, q)",
            "ROOT r = f32[8]{0} add(a, s)",
        ),
        "add(p, q)",
        "add(q, s)",
        "add(a, s)",
        "add(p, a)",
        preserves="rounding",
    ),
    case(
        "excess precision",
        _NARROW,
        "  a = bf16[64]{0} add(p, q)\n  ROOT r = bf16[64]{0} multiply(a, q)",
        "  x = f32[64]{0} convert(p)\n  y = f32[64]{0} convert(q)\n  a = f32[64]{0} add(x, y)\n"
        "  m = f32[64]{0} multiply(a, y)\n  ROOT r = bf16[64]{0} convert(m)",
        preserves="rounding",
    ),
    case(
        "root by its reciprocal",
        entry(
            "p = f32[64]{0} parameter(0)", "a = f32[64]{0} abs(p)", "ROOT r = f32[64]{0} rsqrt(a)"
        ),
        "ROOT r = f32[64]{0} rsqrt(a)",
        "s = f32[64]{0} sqrt(a)\n  o = f32[] constant(1)\n"
        "  os = f32[64]{0} broadcast(o), dimensions={}\n  ROOT r = f32[64]{0} divide(os, s)",
        preserves="rounding",
    ),
    case(
        "softmax beside its largest element",
        _SOFTMAX,
        "  e = f32[8,16]{1,0} exponential(p)",
        "  l = f32[] constant(-inf)\n"
        "  m = f32[8]{0} reduce(p, l), dimensions={1}, to_apply=largest\n"
        "  n = f32[8,16]{1,0} broadcast(m), dimensions={0}\n"
        "  d = f32[8,16]{1,0} subtract(p, n)\n  e = f32[8,16]{1,0} exponential(d)",
        "ENTRY",
        "largest {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT s = f32[] maximum(a, b)\n}\n\nENTRY",
        preserves="finite",
    ),
    case(
        "dot of transposed operands",
        _DOT,
        "ROOT r = f32[6,5]{1,0} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "a = f32[8,6]{1,0} transpose(p), dimensions={1,0}\n"
        "  d = f32[5,6]{1,0} dot(q, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
        "  ROOT r = f32[6,5]{1,0} transpose(d), dimensions={1,0}",
    ),
    case(
        "factor of a sum",
        entry(
            P,
            Q,
            "s = f32[8]{0} parameter(2)",
            "a = f32[8]{0} multiply(p, s)",
            "b = f32[8]{0} multiply(q, s)",
            "ROOT r = f32[8]{0} add(a, b)",
        ),
        "  a = f32[8]{0} multiply(p, s)\n"
        "  b = f32[8]{0} multiply(q, s)\n"
        "  ROOT r = f32[8]{0} add(a, b)",
        "  a = f32[8]{0} add(p, q)\n  ROOT r = f32[8]{0} multiply(a, s)",
        preserves="finite",
    ),
    # -- numbers, bit by bit
    case(
        "twice a number",
        unary("ROOT r = f32[64]{0} add(p, p)"),
        "ROOT r = f32[64]{0} add(p, p)",
        "k = f32[] constant(2)\n  ks = f32[64]{0} broadcast(k), dimensions={}\n"
        "  ROOT r = f32[64]{0} multiply(p, ks)",
    ),
    case(
        "division by a power of two",
        unary(
            "k = f32[] constant(8)",
            "ks = f32[64]{0} broadcast(k), dimensions={}",
            "ROOT r = f32[64]{0} divide(p, ks)",
        ),
        "constant(8)",
        "constant(0.125)",
        "divide(p, ks)",
        "multiply(p, ks)",
    ),
    case(
        "integer product as a shift",
        unary(
            "k = s32[] constant(8)",
            "ks = s32[64]{0} broadcast(k), dimensions={}",
            "ROOT r = s32[64]{0} multiply(p, ks)",
            type=_INTS,
        ),
        "constant(8)",
        "constant(3)",
        "multiply(p, ks)",
        "shift-left(p, ks)",
    ),
    case(
        "unsigned remainder as a mask",
        unary(
            "k = u32[] constant(8)",
            "ks = u32[64]{0} broadcast(k), dimensions={}",
            "ROOT r = u32[64]{0} remainder(p, ks)",
            type="u32[64]{0}",
        ),
        "constant(8)",
        "constant(7)",
        "remainder(p, ks)",
        "and(p, ks)",
    ),
    case(
        "comparison turned round",
        binary("pred[64]{0} compare(p, q), direction=LT"),
        "compare(p, q), direction=LT",
        "compare(q, p), direction=GT",
    ),
    # -- special values alone
    case(
        "nothing times zero, where all is finite",
        unary(
            "z = f32[] constant(0)",
            "zs = f32[64]{0} broadcast(z), dimensions={}",
            "ROOT r = f32[64]{0} multiply(p, zs)",
        ),
        "multiply(p, zs)",
        "copy(zs)",
        preserves="finite",
    ),
    case(
        "maximum as a selection, where all is finite",
        binary("f32[64]{0} maximum(p, q)"),
        "ROOT r = f32[64]{0} maximum(p, q)",
        "c = pred[64]{0} compare(p, q), direction=GT\n  ROOT r = f32[64]{0} select(c, p, q)",
        preserves="finite",
    ),
    # -- what the outside world can tell
    case(
        "calls in no order, in another one",
        _UNORDERED,
        "custom-call(p)",
        "custom-call(q)",
        "custom-call(q)",
        "custom-call(p)",
    ),
    case(
        "a send moved out of a branch, into both",
        SENDING_BRANCH.replace(
            "  ROOT r = f32[8]{0} copy(p)",
            "  t = token[] after-all()\n  o = token[] outfeed(p, t)\n  ROOT r = f32[8]{0} copy(p)",
        ),
        "tell {\n"
        "  p = f32[8]{0} parameter(0)\n"
        "  t = token[] after-all()\n"
        "  o = token[] outfeed(p, t)\n",
        "tell {\n  p = f32[8]{0} parameter(0)\n",
        "keep {\n"
        "  p = f32[8]{0} parameter(0)\n"
        "  t = token[] after-all()\n"
        "  o = token[] outfeed(p, t)\n",
        "keep {\n  p = f32[8]{0} parameter(0)\n",
        "  p = f32[8]{0} parameter(1)\n",
        "  p = f32[8]{0} parameter(1)\n  t = token[] after-all()\n  o = token[] outfeed(p, t)\n",
    ),
    by_passes("copies in a loop that is fed", _FED_LOOP, "copy-insertion"),
    case(
        "shards put together and cut again",
        _GATHERED,
        "ROOT r = f32[8]{0} dynamic-slice(g, o), dynamic_slice_sizes={8}",
        "ROOT r = f32[8]{0} copy(p)",
    ),
    *REWRITES_OF_PRECISION,
)
