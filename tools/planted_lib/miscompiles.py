"""Sixty miscompiles, each as a pass might make it by one mistake.

They were written before anybody looked which of them are found.
"""

from __future__ import annotations

from planted_lib.cases import (
    BRANCHES,
    CALL_THEN_OUTFEED,
    CALLS,
    FOUR,
    LOOP,
    MAX,
    SENDING_BRANCH,
    SENDING_LOOP,
    SQUARE,
    SUM,
    TOKEN,
    P,
    Q,
    binary,
    case,
    entry,
    unary,
)

_INTS = "s32[64]{0}"
_LAST = "  ROOT r = f32[8]{0} negate(p)"

_OUTFEED = entry(P, TOKEN, "o = token[] outfeed(p, t)", _LAST.strip())
_LOGS = entry(
    P,
    Q,
    'a = () custom-call(p), custom_call_target="log", custom_call_has_side_effect=true',
    'b = () custom-call(q), custom_call_target="mark", custom_call_has_side_effect=true, '
    "control-predecessors={a}",
    _LAST.strip(),
)
_HOST = "channel_id=3, is_host_transfer=true"
_SEND = entry(
    P,
    TOKEN,
    f"s = (f32[8]{{0}}, u32[], token[]) send(p, t), {_HOST}",
    f"d = token[] send-done(s), {_HOST}",
    _LAST.strip(),
)
_INFEEDS = entry(
    TOKEN,
    "i = (f32[8]{0}, token[]) infeed(t)",
    "x = f32[8]{0} get-tuple-element(i), index=0",
    "u = token[] get-tuple-element(i), index=1",
    "j = (f32[8]{0}, token[]) infeed(u)",
    "y = f32[8]{0} get-tuple-element(j), index=0",
    "ROOT r = f32[8]{0} subtract(x, y)",
)
_REDUCE = entry(
    SQUARE,
    "z = f32[] constant(0)",
    "ROOT r = f32[6]{0} reduce(p, z), dimensions={0}, to_apply=sum",
    before=SUM,
)
_MAXIMUM = entry(
    SQUARE,
    "z = f32[] constant(-inf)",
    "ROOT r = f32[6]{0} reduce(p, z), dimensions={0}, to_apply=max",
    before=MAX,
)
_GATHER = entry(
    "p = f32[10,4]{1,0} parameter(0)",
    "i = s32[6]{0} parameter(1)",
    "ROOT r = f32[6,4]{1,0} gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, "
    "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
)
_SCATTER = entry(
    "p = f32[10]{0} parameter(0)",
    "i = s32[6]{0} parameter(1)",
    "u = f32[6]{0} parameter(2)",
    "ROOT r = f32[10]{0} scatter(p, i, u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
    before=SUM,
)
_UPDATE = entry(
    "p = f32[8]{0} parameter(0)",
    "u = f32[2]{0} parameter(1)",
    "i = s32[] parameter(2)",
    "n = f32[8]{0} dynamic-update-slice(p, u, i)",
    "old = f32[4]{0} slice(p), slice={[0:4]}",
    "ROOT r = (f32[8]{0}, f32[4]{0}) tuple(n, old)",
)
_REDUCED = entry(
    P,
    "ROOT r = f32[8]{0} all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, "
    "use_global_device_ids=true, to_apply=sum",
    before=SUM,
    header=FOUR,
)
_GATHERED = entry(
    P,
    "ROOT r = f32[32]{0} all-gather(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, dimensions={0}",
    header=FOUR,
)
_PERMUTED = entry(
    P,
    "ROOT r = f32[8]{0} collective-permute(p), channel_id=1, "
    "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}",
    header=FOUR,
)
_SCATTERED = entry(
    "p = f32[4,4]{1,0} parameter(0)",
    "a = f32[4,4]{1,0} all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, to_apply=sum",
    "d = u32[] partition-id()",
    "i = s32[] convert(d)",
    "z = s32[] constant(0)",
    "ROOT r = f32[1,4]{1,0} dynamic-slice(a, i, z), dynamic_slice_sizes={1,4}",
    before=SUM,
    header=FOUR,
)
_ALL_TO_ALL = entry(
    "p = f32[4,4]{1,0} parameter(0)",
    "ROOT r = f32[4,4]{1,0} all-to-all(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "dimensions={0}",
    header=FOUR,
)
_STARTED = entry(
    P,
    Q,
    "s = f32[8]{0} all-reduce-start(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, to_apply=sum",
    "m = f32[8]{0} multiply(p, q)",
    "d = f32[8]{0} all-reduce-done(s)",
    "ROOT r = f32[8]{0} add(d, m)",
    before=SUM,
    header=FOUR,
)
_SORTED = entry(
    "k = f32[16]{0} parameter(0)",
    "v = s32[16]{0} parameter(1)",
    "ROOT r = (f32[16]{0}, s32[16]{0}) sort(k, v), dimensions={0}, to_apply=less",
    before="less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    "  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n"
    "  ROOT l = pred[] compare(a, b), direction=LT\n}\n\n",
)
_RARE = BRANCHES.replace(
    "  ROOT r = f32[8]{0} conditional(i, p, p, p), branch_computations={up, down, flat}",
    "  k = s32[] constant(123456)\n  c = pred[] compare(i, k), direction=EQ\n"
    "  ROOT r = f32[8]{0} conditional(c, p, p), true_computation=up, false_computation=down",
)
_SLICED_LOOP = LOOP.replace(
    "  y = f32[8]{0} add(x, halves)\n",
    "  two = f32[2]{0} dynamic-slice(x, i), dynamic_slice_sizes={2}\n"
    "  more2 = f32[2]{0} add(two, two)\n"
    "  y = f32[8]{0} dynamic-update-slice(x, more2, i)\n",
)
_DOT = entry(
    SQUARE,
    "q = f32[6,6]{1,0} parameter(1)",
    "ROOT r = f32[6,6]{1,0} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
)
_CONVOLUTION = entry(
    "p = f32[1,8,2]{2,1,0} parameter(0)",
    "k = f32[3,2,4]{2,1,0} parameter(1)",
    "ROOT r = f32[1,8,4]{2,1,0} convolution(p, k), window={size=3 pad=1_1}, "
    "dim_labels=b0f_0io->b0f",
)
_WINDOW = entry(
    "p = f32[8]{0} parameter(0)",
    "z = f32[] constant(0)",
    "ROOT r = f32[8]{0} reduce-window(p, z), window={size=3 pad=1_1}, to_apply=sum",
    before=SUM,
)
_BITS = entry(
    "s = u64[2]{0} parameter(0)",
    "g = (u64[2]{0}, u32[8]{0}) rng-bit-generator(s), algorithm=rng_three_fry",
    "n = u64[2]{0} get-tuple-element(g), index=0",
    "h = (u64[2]{0}, u32[8]{0}) rng-bit-generator(n), algorithm=rng_three_fry",
    "x = u32[8]{0} get-tuple-element(g), index=1",
    "y = u32[8]{0} get-tuple-element(h), index=1",
    "ROOT r = u32[8]{0} xor(x, y)",
)
_PAIR = entry(
    P,
    Q,
    "a = f32[8]{0} add(p, q)",
    "b = f32[8]{0} multiply(p, q)",
    "ROOT r = (f32[8]{0}, f32[8]{0}) tuple(a, b)",
)

MISCOMPILES = (
    # -- what the outside world can tell
    case("outfeed dropped", _OUTFEED, "  o = token[] outfeed(p, t)\n", ""),
    case(
        "outfeed of another value",
        _OUTFEED,
        "  o = token[] outfeed(p, t)\n  ROOT r = f32[8]{0} negate(p)",
        "  r = f32[8]{0} negate(p)\n  o = token[] outfeed(r, t)\n  ROOT c = f32[8]{0} copy(r)",
    ),
    case(
        "side-effecting call dropped",
        _LOGS,
        "  b = () ",
        "  b = f32[8]{0} ",
        '_target="mark", custom_call_has_side_effect=true',
        '_target="mark"',
    ),
    case(
        "side-effecting calls swapped",
        _LOGS,
        'custom-call(p), custom_call_target="log"',
        'custom-call(q), custom_call_target="mark"',
        'custom-call(q), custom_call_target="mark"',
        'custom-call(p), custom_call_target="log"',
    ),
    case("side-effecting call on another operand", _LOGS, "custom-call(q)", "custom-call(p)"),
    case(
        "send to the host of another value",
        _SEND,
        "send(p, t)",
        "send(m, t)",
        "  s = ",
        "  m = f32[8]{0} abs(p)\n  s = ",
    ),
    case(
        "send to the host dropped",
        _SEND,
        f"  s = (f32[8]{{0}}, u32[], token[]) send(p, t), {_HOST}\n"
        f"  d = token[] send-done(s), {_HOST}\n",
        "",
    ),
    case("infeeds taken for each other", _INFEEDS, "(x, y)", "(y, x)"),
    case(
        "one infeed for two",
        _INFEEDS,
        "get-tuple-element(j), index=0",
        "get-tuple-element(i), index=0",
        "  j = (f32[8]{0}, token[]) infeed(u)\n",
        "",
    ),
    case("outfeed of a loop runs once more", SENDING_LOOP, "constant(10)", "constant(11)"),
    case(
        "calls and outfeeds of a loop swapped",
        SENDING_LOOP,
        CALL_THEN_OUTFEED,
        "  k = token[] after-all()\n  o = token[] outfeed(x, k)\n"
        '  log = () custom-call(y), custom_call_target="log", custom_call_has_side_effect=true, '
        "control-predecessors={o}\n",
    ),
    case("outfeed of a branch dropped", SENDING_BRANCH, "  o = token[] outfeed(p, t)\n", ""),
    case(
        "side effects of two calls swapped",
        CALLS,
        "call(p, t), to_apply=first",
        "call(p, t), to_apply=second",
        "call(p, a), to_apply=second",
        "call(p, a), to_apply=first",
    ),
    # -- control flow
    case("branches in another order", BRANCHES, "{up, down, flat}", "{up, flat, down}"),
    case(
        "true and false taken for each other",
        SENDING_BRANCH,
        "true_computation=tell, false_computation=keep",
        "true_computation=keep, false_computation=tell",
    ),
    case(
        "rarely taken branch",
        _RARE,
        "  ROOT r = f32[8]{0} add(p, p)",
        "  ROOT r = f32[8]{0} multiply(p, p)",
    ),
    case("one trip less", LOOP, "constant(10)", "constant(9)"),
    case("loop begins at one", LOOP, "z = s32[] constant(0)", "z = s32[] constant(1)"),
    case("slice of the last trip", _SLICED_LOOP, "dynamic-slice(x, i)", "dynamic-slice(x, n)"),
    # -- places
    case(
        "slice off by one",
        unary("ROOT r = f32[32]{0} slice(p), slice={[0:32]}"),
        "[0:32]",
        "[1:33]",
    ),
    case(
        "slice of every other one",
        unary("ROOT r = f32[32]{0} slice(p), slice={[0:32]}"),
        "[0:32]",
        "[0:64:2]",
    ),
    case("reduce along another dimension", _REDUCE, "dimensions={0}", "dimensions={1}"),
    case(
        "transpose dropped",
        entry(SQUARE, "ROOT r = f32[6,6]{1,0} transpose(p), dimensions={1,0}"),
        "dimensions={1,0}",
        "dimensions={0,1}",
    ),
    case(
        "concatenated the other way round",
        entry(P, Q, "ROOT r = f32[16]{0} concatenate(p, q), dimensions={0}"),
        "(p, q)",
        "(q, p)",
    ),
    case(
        "padded at the other end",
        entry(P, "z = f32[] constant(0)", "ROOT r = f32[10]{0} pad(p, z), padding=2_0"),
        "padding=2_0",
        "padding=0_2",
    ),
    case(
        "broadcast along another dimension",
        entry("p = f32[6]{0} parameter(0)", "ROOT r = f32[6,6]{1,0} broadcast(p), dimensions={0}"),
        "dimensions={0}",
        "dimensions={1}",
    ),
    case(
        "dot contracts another dimension",
        _DOT,
        "rhs_contracting_dims={0}",
        "rhs_contracting_dims={1}",
    ),
    case("convolution padded at one end", _CONVOLUTION, "pad=1_1", "pad=2_0"),
    case("reduce-window padded at one end", _WINDOW, "pad=1_1", "pad=2_0"),
    case("results swapped, as by another alias", _PAIR, "tuple(a, b)", "tuple(b, a)"),
    case("read behind an update in place", _UPDATE, "slice(p), slice", "slice(n), slice"),
    case(
        "update without clamping its index",
        _UPDATE,
        "  n = f32[8]{0} dynamic-update-slice(p, u, i)\n",
        "  z = s32[] constant(0)\n"
        "  b = pred[] compare(i, z), direction=GE\n"
        "  bs = pred[8]{0} broadcast(b), dimensions={}\n"
        "  c = f32[8]{0} dynamic-update-slice(p, u, i)\n"
        "  n = f32[8]{0} select(bs, c, p)\n",
    ),
    case(
        "gather that wraps around its indices",
        _GATHER,
        "  ROOT r = f32[6,4]{1,0} gather(p, i)",
        "  ten = s32[] constant(10)\n"
        "  tens = s32[6]{0} broadcast(ten), dimensions={}\n"
        "  w = s32[6]{0} remainder(i, tens)\n"
        "  ROOT r = f32[6,4]{1,0} gather(p, w)",
    ),
    case(
        "scatter that clamps its indices",
        _SCATTER,
        "  ROOT r = f32[10]{0} scatter(p, i, u)",
        "  lo = s32[] constant(0)\n"
        "  hi = s32[] constant(9)\n"
        "  w = s32[6]{0} clamp(lo, i, hi)\n"
        "  ROOT r = f32[10]{0} scatter(p, w, u)",
    ),
    # -- devices
    case("other replica groups", _REDUCED, "{{0,1},{2,3}}", "{{0,2},{1,3}}"),
    case("all-gather in another order", _GATHERED, "{{0,1,2,3}}", "{{0,1,3,2}}"),
    case("permute to another device", _PERMUTED, "{2,3},{3,0}", "{3,2},{2,0}", "{1,2}", "{1,3}"),
    case("reduce-scatter of another dimension", _ALL_TO_ALL, "dimensions={0}", "dimensions={1}"),
    case("shard of the replica", _SCATTERED, "partition-id()", "replica-id()"),
    case(
        "asynchronous reduction of another operand",
        _STARTED,
        "all-reduce-start(p)",
        "all-reduce-start(q)",
    ),
    # -- numbers
    case(
        "operands of a subtraction swapped", binary("f32[64]{0} subtract(p, q)"), "(p, q)", "(q, p)"
    ),
    case(
        "sum of bytes without overflow",
        binary("u8[64]{0} add(p, q)", "u8[64]{0}"),
        "ROOT r = u8[64]{0} add(p, q)",
        "a = u32[64]{0} convert(p)\n"
        "  b = u32[64]{0} convert(q)\n"
        "  c = u32[64]{0} add(a, b)\n"
        "  m = u32[] constant(255)\n"
        "  ms = u32[64]{0} broadcast(m), dimensions={}\n"
        "  l = u32[64]{0} minimum(c, ms)\n"
        "  ROOT r = u8[64]{0} convert(l)",
    ),
    case(
        "comparison with equals",
        binary("pred[64]{0} compare(p, q), direction=LT", _INTS),
        "direction=LT",
        "direction=LE",
    ),
    case(
        "unsigned comparison as a signed one",
        binary("pred[64]{0} compare(p, q), direction=LT", "u32[64]{0}"),
        "ROOT r = pred[64]{0} compare(p, q)",
        "a = s32[64]{0} bitcast-convert(p)\n"
        "  b = s32[64]{0} bitcast-convert(q)\n"
        "  ROOT r = pred[64]{0} compare(a, b)",
    ),
    case(
        "not less taken for greater or equal",
        binary("pred[64]{0} compare(p, q), direction=GE"),
        "ROOT r = pred[64]{0} compare(p, q), direction=GE",
        "l = pred[64]{0} compare(p, q), direction=LT\n  ROOT r = pred[64]{0} not(l)",
    ),
    case(
        "clamp dropped",
        unary(
            "lo = f32[] constant(-1)",
            "hi = f32[] constant(1)",
            "ROOT r = f32[64]{0} clamp(lo, p, hi)",
        ),
        "clamp(lo, p, hi)",
        "copy(p)",
    ),
    case(
        "logical shift of signed numbers",
        binary("s32[64]{0} shift-right-arithmetic(p, q)", _INTS),
        "arithmetic",
        "logical",
    ),
    case(
        "remainder as a mask",
        unary(
            "k = s32[] constant(8)",
            "ks = s32[64]{0} broadcast(k), dimensions={}",
            "ROOT r = s32[64]{0} remainder(p, ks)",
            type=_INTS,
        ),
        "constant(8)",
        "constant(7)",
        "remainder(p, ks)",
        "and(p, ks)",
    ),
    case(
        "smallest number divided by minus one",
        binary("s32[64]{0} divide(p, q)", _INTS),
        "ROOT r = s32[64]{0} divide(p, q)",
        "a = s64[64]{0} convert(p)\n"
        "  b = s64[64]{0} convert(q)\n"
        "  c = s64[64]{0} divide(a, b)\n"
        "  lo = s64[] constant(-2147483648)\n"
        "  hi = s64[] constant(2147483647)\n"
        "  d = s64[64]{0} clamp(lo, c, hi)\n"
        "  ROOT r = s32[64]{0} convert(d)",
    ),
    case(
        "halves rounded away from zero",
        unary("ROOT r = f32[64]{0} round-nearest-even(p)"),
        "round-nearest-even",
        "round-nearest-afz",
    ),
    case(
        "conversion through bf16 lost",
        unary("b = bf16[64]{0} convert(p)", "ROOT r = f32[64]{0} convert(b)"),
        "convert(b)",
        "copy(p)",
    ),
    case("sum begins at one", _REDUCE, "constant(0)", "constant(1)"),
    case("maximum begins at zero", _MAXIMUM, "constant(-inf)", "constant(0)"),
    case("sorted the other way round", _SORTED, "direction=LT", "direction=GT"),
    case("random state used twice", _BITS, "rng-bit-generator(n)", "rng-bit-generator(s)"),
    # -- special values
    case(
        "negation as a subtraction from zero",
        unary("ROOT r = f32[64]{0} negate(p)"),
        "ROOT r = f32[64]{0} negate(p)",
        "z = f32[] constant(0)\n"
        "  zs = f32[64]{0} broadcast(z), dimensions={}\n"
        "  ROOT r = f32[64]{0} subtract(zs, p)",
    ),
    case(
        "nothing times zero",
        unary(
            "z = f32[] constant(0)",
            "zs = f32[64]{0} broadcast(z), dimensions={}",
            "ROOT r = f32[64]{0} multiply(p, zs)",
        ),
        "multiply(p, zs)",
        "copy(zs)",
    ),
    case(
        "difference of a number and itself",
        unary("ROOT r = f32[64]{0} subtract(p, p)"),
        "ROOT r = f32[64]{0} subtract(p, p)",
        "z = f32[] constant(0)\n  ROOT r = f32[64]{0} broadcast(z), dimensions={}",
    ),
    case(
        "subnormal numbers taken for zero",
        unary("ROOT r = f32[64]{0} copy(p)"),
        "ROOT r = f32[64]{0} copy(p)",
        "a = f32[64]{0} abs(p)\n"
        "  l = f32[] constant(1.17549435e-38)\n"
        "  ls = f32[64]{0} broadcast(l), dimensions={}\n"
        "  c = pred[64]{0} compare(a, ls), direction=LT\n"
        "  z = f32[] constant(0)\n"
        "  zs = f32[64]{0} broadcast(z), dimensions={}\n"
        "  ROOT r = f32[64]{0} select(c, zs, p)",
    ),
    case(
        "maximum as a comparison",
        binary("f32[64]{0} maximum(p, q)"),
        "ROOT r = f32[64]{0} maximum(p, q)",
        "c = pred[64]{0} compare(p, q), direction=GT\n  ROOT r = f32[64]{0} select(c, p, q)",
    ),
)
