"""Rules for maximum and minimum."""

from __future__ import annotations

import math

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.constants import Scalar, integer_range, splat_value
from hloopt.passes.rewriting.rules.pattern import op, splat
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.terms import is_float, shared_scalar

_BOTH = ("maximum", "minimum")


@rule(op(_BOTH, "x", "x"), dynamic=True)
def minmax_itself(m: AlgsimpMatch) -> Result:
    """max(x, x) → x, and the same for min."""
    return m.x


@rule(op(_BOTH, "x", splat().named("c"), any_order=True), dynamic=True)
def minmax_identity(m: AlgsimpMatch) -> Result:
    """max(x, lowest) → x, min(x, highest) → x: for integers, and for floats where NaN goes on."""
    bound = identity_of(m.root.opcode, m.root)
    if bound is None or splat_value(m.c) != bound:
        return None
    if is_float(m.root) and not m.options.minmax_propagate_nan:
        return Missed("it would keep NaN: minmax_propagate_nan is off")
    return m.if_compatible(m.x)


def identity_of(opcode: Opcode, like: Instruction) -> Scalar | None:
    """The value that a maximum or minimum of the type of `like` ignores."""
    kind = like.shape.element_type
    is_max = opcode is Opcode.MAXIMUM
    if kind is None or kind.kind == "complex":
        return None
    if kind.kind == "pred":
        return not is_max
    if kind.is_integral:
        return integer_range(kind)[0 if is_max else 1]
    return -math.inf if is_max else math.inf


@rule(op(_BOTH, op(_BOTH, "x", "y").named("inner"), "z"), floats="finite")
def minmax_of_minmax(m: AlgsimpMatch) -> Result:
    """max(max(x, y), y) → max(x, y); also with x, and for min."""
    if m.inner.opcode is not m.root.opcode or m.z not in (m.x, m.y):
        return None
    return m.if_compatible(m.inner)


@rule(op(_BOTH, "z", op(_BOTH, "x", "y").named("inner")), floats="finite")
def minmax_with_minmax(m: AlgsimpMatch) -> Result:
    """max(x, max(x, y)) → max(x, y); max(y, max(x, y)) → max(y, x): the sign of NaN
    stays."""
    if m.inner.opcode is not m.root.opcode:
        return None
    if m.z is m.x:
        return m.if_compatible(m.inner)
    if m.z is m.y:
        return m.build.make(m.root.opcode, m.y, m.x, shape=m.root.shape)
    return None


@rule(
    op(_BOTH, op(_BOTH).named("inner"), op(("constant", "broadcast")).named("c"), any_order=True),
    floats="finite",
)
def minmax_to_clamp(m: AlgsimpMatch) -> Result:
    """max(lo, min(x, hi)) and min(hi, max(x, lo)) → clamp(lo, x, hi) for constants lo < hi."""
    if m.inner.opcode is m.root.opcode:
        return None
    outer = shared_scalar(m.c)
    for number in (1, 0):
        inner = shared_scalar(m.inner.operands[number])
        if outer is None or inner is None or isinstance(outer, complex | bool):
            continue
        if isinstance(inner, complex | bool):
            continue
        is_max = m.root.opcode is Opcode.MAXIMUM
        low, high = (outer, inner) if is_max else (inner, outer)
        if not low < high:
            return Missed(f"{low} is not less than {high}")
        bound = m.inner.operands[number]
        bounds = (m.c, bound) if is_max else (bound, m.c)
        if any(b.shape.dimensions != m.root.shape.dimensions for b in bounds):
            return None
        x = m.inner.operands[1 - number]
        return m.build.make("clamp", bounds[0], x, bounds[1], shape=m.root.shape)
    return None


@rule(
    op("maximum", "lo", op("clamp", "lo", "x", "hi").named("clamp"), any_order=True),
    floats="finite",
)
def max_of_clamp(m: AlgsimpMatch) -> Result:
    """max(lo, clamp(lo, x, hi)) → clamp(lo, x, hi) where lo is not more than hi."""
    low, high = shared_scalar(m.lo), shared_scalar(m.hi)
    if low is None or high is None or isinstance(low, complex) or isinstance(high, complex):
        return Missed("its bounds are not constants")
    if not low <= high:
        return Missed(f"{low} is more than {high}")
    return m.if_compatible(m.clamp)


_MONOTONIC = ("cbrt", "erf", "logistic", "tanh")


@rule(
    op("maximum", op(_MONOTONIC, "a").named("f"), op(_MONOTONIC, "b").named("g")), floats="finite"
)
def max_of_monotonic(m: AlgsimpMatch) -> Result:
    """max(f(a), f(b)) → f(max(a, b)) for cbrt, erf, logistic and tanh, which do not decrease."""
    if m.f.opcode is not m.g.opcode:
        return None
    largest = m.build.make("maximum", m.a, m.b)
    return m.build.make(m.f.opcode, largest, shape=m.root.shape)


RULES = (
    minmax_itself,
    minmax_identity,
    minmax_of_minmax,
    minmax_with_minmax,
    minmax_to_clamp,
    max_of_clamp,
    max_of_monotonic,
)
