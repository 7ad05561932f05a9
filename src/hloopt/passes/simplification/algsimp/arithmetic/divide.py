"""Rules for divide and remainder."""

from __future__ import annotations

import math

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.element_type import ElementType
from hloopt.passes.rewriting.rules.constants import integer_range, scalar_of, splat_value
from hloopt.passes.rewriting.rules.pattern import either, op, splat, value
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.signatures import is_inexact
from hloopt.passes.simplification.algsimp.terms import (
    is_float,
    is_integer,
    kind_of,
    power_of_two,
    shared_scalar,
)

_SMALLEST = 2.0**-14
"""The smallest inverse that is a normal number in all types with 5 bits of exponent, or more."""


_CONSTANT = either(op("constant"), op("broadcast", op("constant")))


@rule(op("divide", "a", splat(1)), dynamic=True)
def divide_by_one(m: AlgsimpMatch) -> Result:
    """A / 1 → A."""
    return m.if_compatible(m.a)


@rule(op("divide", "a", _CONSTANT.named("b")))
def divide_by_power_of_two(m: AlgsimpMatch) -> Result:
    """Integer A / 2^k → a shift; of |A|, for signed A, since division rounds to 0."""
    exponent = _exponent(m)
    if exponent is None:
        return None
    shift = m.build.splat(exponent, m.root.shape)
    if kind_of(m.root) == "unsigned":
        return m.build.make("shift-right-logical", m.a, shift, shape=m.root.shape)
    return _on_absolute_value(m, "shift-right-logical", shift)


@rule(op("remainder", "a", op(("constant", "broadcast")).named("b")))
def remainder_by_power_of_two(m: AlgsimpMatch) -> Result:
    """Integer A % 2^k → A & (2^k - 1); of the absolute value, with the sign of A, if signed."""
    exponent = _exponent(m)
    if exponent is None:
        return None
    mask = m.build.splat((1 << exponent) - 1, m.root.shape)
    if kind_of(m.root) == "unsigned":
        return m.build.make("and", m.a, mask, shape=m.root.shape)
    return _on_absolute_value(m, "and", mask)


def _exponent(m: AlgsimpMatch) -> int | None:
    """k for a positive divisor 2^k of integers."""
    if not is_integer(m.root):
        return None
    divisor = shared_scalar(m.b)
    if divisor is None or isinstance(divisor, complex) or divisor <= 0:
        return None
    return power_of_two(m.b)


def _on_absolute_value(m: AlgsimpMatch, opcode: str, operand: Instruction) -> Instruction:
    """The opcode on |A|, negated where A is negative; right for the smallest A, too."""
    build, shape = m.build, m.root.shape
    negative = build.compare("LT", m.a, build.splat(0, shape))
    size = build.make("select", negative, build.make("negate", m.a, shape=shape), m.a, shape=shape)
    result = build.make(opcode, size, operand, shape=shape)
    return build.make(
        "select", negative, build.make("negate", result, shape=shape), result, shape=shape
    )


@rule(op("divide", op("exponential", "a"), op("exponential", "b")), floats="finite")
def divide_exponentials(m: AlgsimpMatch) -> Result:
    """exp(A) / exp(B) → exp(A - B)."""
    difference = m.build.make("subtract", m.a, m.b, shape=m.root.shape)
    return m.build.make("exponential", difference, shape=m.root.shape)


@rule(op("divide", "a", op("exponential", "b")), floats="finite")
def divide_by_exponential(m: AlgsimpMatch) -> Result:
    """A / exp(B) → A·exp(-B)."""
    inverse = m.build.make("exponential", m.build.make("negate", m.b))
    return m.build.make("multiply", m.a, inverse, shape=m.root.shape)


@rule(op("divide", "a", op("power", "b", "c").named("power")), floats="finite")
def divide_by_power(m: AlgsimpMatch) -> Result:
    """A / pow(B, C) → A·pow(B, -C), for floats."""
    if is_integer(m.root):
        return None
    inverse = m.build.make("power", m.b, m.build.make("negate", m.c), shape=m.power.shape)
    return m.build.make("multiply", m.a, inverse, shape=m.root.shape)


@rule(op("divide", "a", op("sqrt", "b").one_use()), floats="rounding")
def divide_by_sqrt(m: AlgsimpMatch) -> Result:
    """A / sqrt(B) → A·rsqrt(B)."""
    return m.build.make("multiply", m.a, m.build.make("rsqrt", m.b), shape=m.root.shape)


@rule(op("divide", "a", op("rsqrt", "b").one_use()), floats="finite")
def divide_by_rsqrt(m: AlgsimpMatch) -> Result:
    """A / rsqrt(B) → A·sqrt(B)."""
    return m.build.make("multiply", m.a, m.build.make("sqrt", m.b), shape=m.root.shape)


@rule(
    op("divide", "a", _CONSTANT.named("c")),
    floats="rounding",
    signature=is_inexact,
)
def divide_by_constant(m: AlgsimpMatch) -> Result:
    """A / C → A·(1/C) for floats and complex numbers, also where C is broadcast."""
    if m.a.opcode is Opcode.CONSTANT:
        return None
    source = m.c.operands[0] if m.c.opcode is Opcode.BROADCAST else m.c
    found = splat_value(source)
    if found is not None and not found:
        return Missed("it divides by 0")
    if isinstance(found, float):
        scale = 1 / found
        if not _SMALLEST <= abs(scale) < math.inf or not abs(found) < math.inf:
            return Missed(f"1 / {found} is out of range")
        inverse = m.build.splat(scale, source.shape)
    else:
        one = m.build.splat(1, source.shape)
        inverse = m.build.make("divide", one, source, shape=source.shape)
    if m.c.opcode is Opcode.BROADCAST:
        inverse = m.build.clone(m.c, [inverse])
    return m.build.make("multiply", m.a, inverse, shape=m.root.shape)


@rule(
    op("divide", "a", op("broadcast", "b").one_use().named("spread")),
    floats="finite",
    option="executing_on_cpu",
)
def divide_by_broadcast(m: AlgsimpMatch) -> Result:
    """A / broadcast(B) → A·broadcast(1/B) on CPU: fewer divisions."""
    if not m.options.enable_sink_broadcast or is_integer(m.root):
        return None
    if kind_of(m.root) == "complex" and not m.options.enable_fast_math:
        return None
    if m.spread.shape.element_count() <= m.b.shape.element_count():
        return None
    inverse = m.build.make("divide", m.build.splat(1, m.b.shape), m.b, shape=m.b.shape)
    return m.build.make("multiply", m.a, m.build.clone(m.spread, [inverse]), shape=m.root.shape)


@rule(op("divide", op("divide", "a", "b"), op("divide", "c", "d")), floats="finite")
def divide_quotients(m: AlgsimpMatch) -> Result:
    """(A/B) / (C/D) → (A·D) / (B·C), for floats."""
    if is_integer(m.root):
        return None
    above = m.build.make("multiply", m.a, m.d, shape=m.root.shape)
    below = m.build.make("multiply", m.b, m.c, shape=m.root.shape)
    return m.build.make("divide", above, below, shape=m.root.shape)


@rule(op("divide", op("divide", "a", "b"), "c"), floats="finite")
def divide_quotient(m: AlgsimpMatch) -> Result:
    """(A/B) / C → A / (B·C), for floats."""
    if is_integer(m.root):
        return None
    below = m.build.make("multiply", m.b, m.c, shape=m.root.shape)
    return m.build.make("divide", m.a, below, shape=m.root.shape)


@rule(op("divide", "a", op("divide", "b", "c")), floats="finite")
def divide_by_quotient(m: AlgsimpMatch) -> Result:
    """A / (B/C) → (A·C) / B, for floats."""
    if is_integer(m.root):
        return None
    above = m.build.make("multiply", m.a, m.c, shape=m.root.shape)
    return m.build.make("divide", above, m.b, shape=m.root.shape)


@rule(
    op(
        "divide",
        op("convert", value("p").of_type("pred")).named("a"),
        op("broadcast", value("b").scalar()),
    ),
    floats="finite",
)
def divide_pred(m: AlgsimpMatch) -> Result:
    """convert(pred) / broadcast(B) → broadcast(1/B)·convert(pred), B a float scalar."""
    if not is_float(m.root):
        return None
    inverse = m.build.make("divide", m.build.scalar(1, m.b.shape), m.b)
    spread = m.build.fill(inverse, m.root.shape)
    return m.build.make("multiply", spread, m.a, shape=m.root.shape)


@rule(op("remainder", op("remainder", "a", "b").named("inner"), "b"))
def repeated_remainder(m: AlgsimpMatch) -> Result:
    """(A % B) % B → A % B."""
    return m.inner


@rule(op("remainder", op("iota").named("iota"), op("broadcast", "n")))
def remainder_of_iota(m: AlgsimpMatch) -> Result:
    """iota % broadcast(N) → iota where N is at least the size of the counted dimension."""
    size = _counted(m.iota)
    bound = scalar_of(m.n)
    if not is_integer(m.root) or isinstance(bound, complex) or bound is None or bound < size:
        return None
    return m.iota if size <= integer_range(_kind(m.root))[1] + 1 else None


@rule(
    op(
        "remainder",
        op("add", op("iota").named("iota"), op("broadcast", "n").named("spread"), any_order=True),
        op("broadcast", "k").named("divisor"),
    )
)
def remainder_of_shifted_iota(m: AlgsimpMatch) -> Result:
    """(iota + broadcast(N)) % broadcast(N) → iota % broadcast(N) where N + size fits the type."""
    if not is_integer(m.root):
        return None
    shift, divisor = scalar_of(m.n), scalar_of(m.k)
    if shift is None or isinstance(shift, complex) or shift != divisor or shift <= 0:
        return None
    if shift + _counted(m.iota) > integer_range(_kind(m.root))[1]:
        return Missed(f"%{m.iota.name} plus {shift} may overflow")
    return m.build.make("remainder", m.iota, m.divisor, shape=m.root.shape)


def _counted(iota: Instruction) -> int:
    return iota.shape.dimensions[int(iota.attributes["iota_dimension"])]


def _kind(instruction: Instruction) -> ElementType:
    assert instruction.shape.element_type is not None
    return instruction.shape.element_type


RULES = (
    divide_by_one,
    divide_by_power_of_two,
    divide_exponentials,
    divide_by_exponential,
    divide_by_power,
    divide_by_sqrt,
    divide_by_rsqrt,
    divide_by_constant,
    divide_by_broadcast,
    divide_quotients,
    divide_quotient,
    divide_by_quotient,
    divide_pred,
    repeated_remainder,
    remainder_by_power_of_two,
    remainder_of_iota,
    remainder_of_shifted_iota,
)
