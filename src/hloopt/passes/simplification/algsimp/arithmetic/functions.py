"""Rules for abs, power, exponential, logarithm, roots, complex numbers and reduce-precision."""

from __future__ import annotations

from hloopt.ir.attributes.values import parse_int
from hloopt.passes.rewriting.rules.constants import scalar_of
from hloopt.passes.rewriting.rules.pattern import op, splat
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.terms import (
    is_float,
    is_integer,
    is_non_negative,
    kind_of,
)

_FAST_MATH = Missed("it would ignore NaN, infinity and rounding: enable_fast_math is off")


@rule(op("abs", "a"), floats="finite")
def abs_of_non_negative(m: AlgsimpMatch) -> Result:
    """|A| → A where A is not negative."""
    return m.if_compatible(m.a) if is_non_negative(m.a, m.options) else None


@rule(op("power", "a", splat(0)), floats="finite")
def power_zero(m: AlgsimpMatch) -> Result:
    """A^0 → 1."""
    return m.build.splat(1, m.root.shape)


@rule(op("power", "a", splat(1)), dynamic=True)
def power_one(m: AlgsimpMatch) -> Result:
    """A^1 → A."""
    return m.if_compatible(m.a)


@rule(op("power", op("exponential", "a"), "b"), floats="finite")
def power_of_exponential(m: AlgsimpMatch) -> Result:
    """exp(A)^B → exp(A·B)."""
    if kind_of(m.root) == "complex":
        return Missed("powers of complex numbers have branches")
    product = m.build.make("multiply", m.a, m.b, shape=m.root.shape)
    return m.build.make("exponential", product, shape=m.root.shape)


@rule(op("power", "a", splat(2)), floats="rounding")
def power_two(m: AlgsimpMatch) -> Result:
    """A^2 → A·A."""
    return m.build.make("multiply", m.a, m.a, shape=m.root.shape)


@rule(op("power", "a", splat(3)), floats="rounding")
def power_three(m: AlgsimpMatch) -> Result:
    """A^3 → A·(A·A)."""
    square = m.build.make("multiply", m.a, m.a, shape=m.root.shape)
    return m.build.make("multiply", m.a, square, shape=m.root.shape)


@rule(op("power", "a", splat(-1)), floats="rounding")
def power_minus_one(m: AlgsimpMatch) -> Result:
    """A^-1 → 1/A, for floats: an integer to a negative power is not its quotient."""
    if is_integer(m.root):
        return None
    return m.build.make("divide", m.build.splat(1, m.root.shape), m.a, shape=m.root.shape)


@rule(op("power", "a", splat(0.5)), floats="finite")
def power_half(m: AlgsimpMatch) -> Result:
    """A^0.5 → sqrt(A) where A is not negative."""
    if not is_float(m.root) or not is_non_negative(m.a, m.options):
        return Missed(f"%{m.a.name} may be negative")
    return m.build.make("sqrt", m.a, shape=m.root.shape)


@rule(op("exponential", op(("constant", "broadcast")).named("x")), floats="rounding")
def exponential_of_zero(m: AlgsimpMatch) -> Result:
    """exp(0) → 1, for a rank-0 constant, also broadcast."""
    source = m.x.operands[0] if m.x.opcode.value == "broadcast" else m.x
    if source.shape.dimensions or scalar_of(source) != 0:
        return None
    return m.build.splat(1, m.root.shape)


@rule(op("log", op("exponential", "a")), floats="finite")
def log_of_exponential(m: AlgsimpMatch) -> Result:
    """log(exp(A)) → A with enable_fast_math."""
    return m.if_compatible(m.a) if m.options.enable_fast_math else _FAST_MATH


@rule(op("log", op("power", "a", "b")), floats="finite")
def log_of_power(m: AlgsimpMatch) -> Result:
    """log(pow(A, B)) → select(B = 0, 0, log(|A|)·B) where A is not negative, or with
    enable_fast_math; without |…| for complex numbers."""
    build, shape = m.build, m.root.shape
    if not (m.options.enable_fast_math or is_non_negative(m.a, m.options)):
        return Missed(f"%{m.a.name} may be negative")
    base = m.a
    if kind_of(base) != "complex":
        base = build.make("abs", base)
    product = build.make("multiply", build.make("log", base), m.b, shape=shape)
    zero = build.splat(0, shape)
    return build.make("select", build.compare("EQ", m.b, zero), zero, product, shape=shape)


@rule(op("log", op("sqrt", "a")), floats="finite")
def log_of_sqrt(m: AlgsimpMatch) -> Result:
    """log(sqrt(A)) → 0.5·log(A)."""
    return _scaled_log(m, 0.5)


@rule(op("log", op("rsqrt", "a")), floats="finite")
def log_of_rsqrt(m: AlgsimpMatch) -> Result:
    """log(rsqrt(A)) → -0.5·log(A)."""
    return _scaled_log(m, -0.5)


def _scaled_log(m: AlgsimpMatch, factor: float) -> Result:
    log = m.build.make("log", m.a, shape=m.root.shape)
    return m.build.make("multiply", log, m.build.splat(factor, m.root.shape), shape=m.root.shape)


@rule(op("rsqrt", op("power", "a", splat(-2))), floats="finite")
def rsqrt_of_power(m: AlgsimpMatch) -> Result:
    """rsqrt(A^-2) → A where A is not negative."""
    if not is_non_negative(m.a, m.options):
        return Missed(f"%{m.a.name} may be negative")
    return m.if_compatible(m.a)


@rule(op("rsqrt", op("divide", splat(1), "a")), floats="finite")
def rsqrt_of_inverse(m: AlgsimpMatch) -> Result:
    """rsqrt(1/A) → sqrt(A) where A is not negative."""
    if not is_non_negative(m.a, m.options):
        return Missed(f"%{m.a.name} may be negative")
    return m.build.make("sqrt", m.a, shape=m.root.shape)


@rule(op("sqrt", op("multiply", "a", "a")), floats="finite")
def sqrt_of_square(m: AlgsimpMatch) -> Result:
    """sqrt(A·A) → |A| with enable_fast_math; A·A may overflow or underflow."""
    if kind_of(m.a) == "complex":
        return Missed("the square of a complex number has two roots")
    if not m.options.enable_fast_math:
        return _FAST_MATH
    return m.build.make("abs", m.a, shape=m.root.shape)


@rule(op("complex", op("real", "c"), op("imag", "c")), dynamic=True)
def complex_of_parts(m: AlgsimpMatch) -> Result:
    """complex(real(c), imag(c)) → c."""
    return m.if_compatible(m.c)


@rule(op("real", op("complex", "a", "b")), dynamic=True)
def real_of_complex(m: AlgsimpMatch) -> Result:
    """real(complex(a, b)) → a."""
    return m.a


@rule(op("imag", op("complex", "a", "b")), dynamic=True)
def imag_of_complex(m: AlgsimpMatch) -> Result:
    """imag(complex(a, b)) → b."""
    return m.b


@rule(op("real", "a"), dynamic=True)
def real_of_real(m: AlgsimpMatch) -> Result:
    """real(A) → A where A is not complex."""
    return None if kind_of(m.a) == "complex" else m.if_compatible(m.a)


@rule(op("imag", "a"), dynamic=True)
def imag_of_real(m: AlgsimpMatch) -> Result:
    """imag(A) → 0 where A is not complex; dynamic sizes stay those of A."""
    if kind_of(m.a) == "complex":
        return None
    shape = m.root.shape
    if shape.is_dynamic:
        zero = m.build.scalar(0, shape)
        return m.build.broadcast(zero, (), shape) if not _unbounded(m) else None
    return m.build.splat(0, shape)


def _unbounded(m: AlgsimpMatch) -> bool:
    return m.root.shape.is_unbounded_dynamic


@rule(op("reduce-precision", "a"), option="enable_remove_no_op_reduce_precision")
def reduce_precision_of_type(m: AlgsimpMatch) -> Result:
    """reduce-precision(A) → A where it keeps all bits that the type of A has."""
    kind = m.root.shape.type_name
    widths = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
    asked = tuple(parse_int(m.root.attributes[name]) for name in ("exponent_bits", "mantissa_bits"))
    return m.if_compatible(m.a) if widths.get(kind) == asked else None


RULES = (
    abs_of_non_negative,
    power_zero,
    power_one,
    power_of_exponential,
    power_two,
    power_three,
    power_minus_one,
    power_half,
    exponential_of_zero,
    log_of_exponential,
    log_of_power,
    log_of_sqrt,
    log_of_rsqrt,
    rsqrt_of_power,
    rsqrt_of_inverse,
    sqrt_of_square,
    complex_of_parts,
    real_of_complex,
    imag_of_complex,
    real_of_real,
    imag_of_real,
    reduce_precision_of_type,
)
