"""Rules for subtract and negate."""

from __future__ import annotations

from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.pattern import op, splat
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.terms import is_integer

_NEEDS_FAST_MATH = Missed("it would ignore NaN, infinity and rounding: enable_fast_math is off")


@rule(op("subtract", "a", "a"), floats="finite")
def subtract_itself(m: AlgsimpMatch) -> Result:
    """A - A → 0 for integers; for floats, where it may be NaN, with enable_fast_math."""
    if not _is_exact(m):
        return _NEEDS_FAST_MATH
    return m.build.splat(0, m.root.shape)


@rule(op("subtract", "a", splat(0)), floats="finite", dynamic=True)
def subtract_zero(m: AlgsimpMatch) -> Result:
    """A - 0 → A."""
    return m.if_compatible(m.a)


@rule(op("subtract", "a", op(("constant", "broadcast")).named("c")))
def subtract_constant(m: AlgsimpMatch) -> Result:
    """A - C → A + (-C), so that rules for add find the constant; also for a broadcast C."""
    if m.a.opcode is Opcode.CONSTANT or m.root.shape.type_name == "pred":
        return None
    if m.c.opcode is Opcode.CONSTANT:
        negated = m.build.make("negate", m.c)
        return m.build.make("add", m.a, negated, shape=m.root.shape)
    (source,) = m.c.operands
    if source.opcode is not Opcode.CONSTANT:
        return None
    negated = m.build.make("negate", source)
    spread = m.build.clone(m.c, [negated])
    return m.build.make("add", m.a, spread, shape=m.root.shape)


@rule(op("subtract", "a", op("subtract", "a", "b")), floats="finite")
def subtract_difference(m: AlgsimpMatch) -> Result:
    """A - (A - B) → B for integers, or with enable_fast_math."""
    return m.b if _is_exact(m) else _NEEDS_FAST_MATH


@rule(op("subtract", "a", op("add", "a", "b", any_order=True)), floats="finite")
def subtract_sum(m: AlgsimpMatch) -> Result:
    """A - (A + B) → -B for integers, or with enable_fast_math."""
    if not _is_exact(m):
        return _NEEDS_FAST_MATH
    return m.build.make("negate", m.b, shape=m.root.shape)


@rule(op("subtract", op("add", "a", "b", any_order=True), "a"), floats="finite")
def subtract_from_sum(m: AlgsimpMatch) -> Result:
    """(A + B) - A → B for integers, or with enable_fast_math."""
    return m.b if _is_exact(m) else _NEEDS_FAST_MATH


@rule(op("negate", op("negate", "a")), dynamic=True)
def negate_twice(m: AlgsimpMatch) -> Result:
    """-(-A) → A."""
    return m.a


@rule(op("not", op("not", "a")), dynamic=True)
def not_twice(m: AlgsimpMatch) -> Result:
    """not(not(A)) → A."""
    return m.a


def _is_exact(m: AlgsimpMatch) -> bool:
    return is_integer(m.root) or m.options.enable_fast_math


RULES = (
    subtract_itself,
    subtract_zero,
    subtract_constant,
    subtract_difference,
    subtract_sum,
    subtract_from_sum,
    negate_twice,
    not_twice,
)
