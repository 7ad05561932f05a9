"""Rules for multiply."""

from __future__ import annotations

from hloopt.ir.attributes.typed import dimensions_of, labels_of
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.pattern import constant, op, splat, value
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.terms import (
    is_constant,
    is_integer,
    is_non_negative,
    is_pred,
    is_scalar_constant,
    kind_of,
    out_of_range,
)

_SCALAR = value("b").scalar()


@rule(op("multiply", "a", splat(1), any_order=True), dynamic=True)
def multiply_by_one(m: AlgsimpMatch) -> Result:
    """A·1 → A."""
    return m.if_compatible(m.a)


@rule(op("multiply", "a", splat(0), any_order=True), floats="finite")
def multiply_by_zero(m: AlgsimpMatch) -> Result:
    """A·0 → 0 for integers; for floats, where NaN and infinity give NaN, with enable_fast_math."""
    if not (is_integer(m.root) or is_pred(m.root) or m.options.enable_fast_math):
        return Missed("it would ignore NaN and infinity: enable_fast_math is off")
    return m.build.splat(0, m.root.shape)


@rule(op("multiply", op("negate", "a"), op("negate", "b")))
def multiply_negations(m: AlgsimpMatch) -> Result:
    """(-A)·(-B) → A·B."""
    return m.build.make("multiply", m.a, m.b, shape=m.root.shape)


@rule(op("multiply", op("abs", "a"), op("abs", "a")))
def square_of_abs(m: AlgsimpMatch) -> Result:
    """|A|·|A| → A·A, unless A is complex."""
    if kind_of(m.a) == "complex":
        return Missed(f"%{m.a.name} is complex")
    return m.build.make("multiply", m.a, m.a, shape=m.root.shape)


@rule(
    op("multiply", op("convert", value("p").of_type("pred")), "a", any_order=True), floats="finite"
)
def multiply_by_pred(m: AlgsimpMatch) -> Result:
    """convert(pred)·A → select(pred, A, 0): where pred is false, NaN and infinity give 0."""
    return m.build.make("select", m.p, m.a, m.build.splat(0, m.root.shape), shape=m.root.shape)


@rule(
    op(
        "multiply",
        op("multiply", "a", constant().named("c"), any_order=True),
        op("multiply", "b", constant().named("d"), any_order=True),
    ),
    floats="finite",
)
def multiply_gather_constants(m: AlgsimpMatch) -> Result:
    """(A·C1)·(B·C2) → (A·B)·(C1·C2)."""
    if is_constant(m.a) or is_constant(m.b):
        return None
    if reason := out_of_range("multiply", m.c, m.d):
        return Missed(reason)
    values = m.build.make("multiply", m.a, m.b, shape=m.root.shape)
    constants = m.build.make("multiply", m.c, m.d, shape=m.root.shape)
    return m.build.make("multiply", values, constants, shape=m.root.shape)


@rule(
    op(
        "multiply",
        op("multiply", "a", constant().named("c"), any_order=True),
        constant().named("d"),
        any_order=True,
    ),
    floats="finite",
)
def multiply_merge_constants(m: AlgsimpMatch) -> Result:
    """(A·C1)·C2 → A·(C1·C2)."""
    if is_constant(m.a):
        return None
    if reason := out_of_range("multiply", m.c, m.d):
        return Missed(reason)
    return m.build.make("multiply", m.a, m.build.make("multiply", m.c, m.d), shape=m.root.shape)


@rule(
    op(
        "multiply",
        op("multiply", "a", op(("constant", "broadcast")).where(is_scalar_constant).named("c"),
           any_order=True),
        op("broadcast", _SCALAR),
        any_order=True,
    ),
    floats="finite",
)  # fmt: skip
def multiply_broadcasts(m: AlgsimpMatch) -> Result:
    """(A·C)·broadcast(B) → A·broadcast(B·C) for scalars: one multiplication is of scalars.

    With two broadcast constants, A·broadcast(C1·C2).
    """
    c = m.c.operands[0] if m.c.opcode is Opcode.BROADCAST else m.c
    if m.b.opcode is Opcode.CONSTANT and m.c.opcode is not Opcode.BROADCAST:
        return None
    if m.a.opcode is Opcode.BROADCAST and m.a.operands[0].shape.is_scalar:
        return None
    if reason := out_of_range("multiply", c, m.b):
        return Missed(reason)
    pair = (c, m.b) if m.b.opcode is Opcode.CONSTANT else (m.b, c)
    product = m.build.make("multiply", *pair)
    return m.build.make("multiply", m.a, m.build.fill(product, m.root.shape), shape=m.root.shape)


@rule(op("multiply", op("exponential", "a"), op("exponential", "b")), floats="finite")
def multiply_exponentials(m: AlgsimpMatch) -> Result:
    """exp(A)·exp(B) → exp(A + B)."""
    total = m.build.make("add", m.a, m.b, shape=m.root.shape)
    return m.build.make("exponential", total, shape=m.root.shape)


@rule(op("multiply", op("sqrt", "x"), op("sqrt", "x")), floats="rounding")
def square_of_sqrt(m: AlgsimpMatch) -> Result:
    """sqrt(x)·sqrt(x) → x where x is not negative."""
    if not is_non_negative(m.x, m.options):
        return Missed(f"%{m.x.name} may be negative")
    return m.x


@rule(op("multiply", op("rsqrt", "x"), op("rsqrt", "x")), floats="rounding")
def square_of_rsqrt(m: AlgsimpMatch) -> Result:
    """rsqrt(x)·rsqrt(x) → 1/x where x is not negative."""
    if not is_non_negative(m.x, m.options):
        return Missed(f"%{m.x.name} may be negative")
    return m.build.make("divide", m.build.splat(1, m.root.shape), m.x, shape=m.root.shape)


@rule(
    op(
        "multiply",
        op("add", op("convolution").one_use().named("conv"), "bias", any_order=True)
        .one_use().named("sum"),
        op("broadcast", constant().named("c")).one_use().named("factor"),
        any_order=True,
    ),
    floats="rounding",
    option="enable_conv_add_multiply_reorder",
)  # fmt: skip
def reorder_conv_add_multiply(m: AlgsimpMatch) -> Result:
    """(conv(i, C1) + bias)·broadcast(C2) → conv(i, C1·C2) + bias·broadcast(C2), where C2 has one
    factor for each output feature: the kernel is scaled before the program runs."""
    image, kernel = m.conv.operands
    labels = labels_of(m.conv)
    if kernel.opcode is not Opcode.CONSTANT or kernel.shape.type_name != m.c.shape.type_name:
        return None
    if dimensions_of(m.factor) != (labels.output_feature_dimension,):
        return Missed(f"%{m.c.name} is not along the output features")
    spread = m.build.broadcast(m.c, (labels.kernel_output_feature_dimension,), kernel.shape)
    scaled = m.build.make("multiply", kernel, spread, shape=kernel.shape)
    conv = m.build.clone(m.conv, [image, scaled])
    bias = m.build.make("multiply", m.bias, m.factor, shape=m.root.shape)
    return m.build.make("add", conv, bias, shape=m.root.shape)


RULES = (
    multiply_by_one,
    multiply_by_zero,
    multiply_negations,
    square_of_abs,
    multiply_by_pred,
    multiply_gather_constants,
    multiply_merge_constants,
    multiply_broadcasts,
    multiply_exponentials,
    square_of_sqrt,
    square_of_rsqrt,
    reorder_conv_add_multiply,
)
