"""Miscompiles of numbers, and of special values."""

from __future__ import annotations

from planted_lib.cases import (
    MAX,
    REDUCE,
    SQUARE,
    binary,
    case,
    entry,
    unary,
)

_INTS = "s32[64]{0}"
_MAXIMUM = entry(
    SQUARE,
    "z = f32[] constant(-inf)",
    "ROOT r = f32[6]{0} reduce(p, z), dimensions={0}, to_apply=max",
    before=MAX,
)
_SORTED = entry(
    "k = f32[16]{0} parameter(0)",
    "v = s32[16]{0} parameter(1)",
    "ROOT r = (f32[16]{0}, s32[16]{0}) sort(k, v), dimensions={0}, to_apply=less",
    before="less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    "  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n"
    "  ROOT l = pred[] compare(a, b), direction=LT\n}\n\n",
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

VALUES = (
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
    case("sum begins at one", REDUCE, "constant(0)", "constant(1)"),
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
