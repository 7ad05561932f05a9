"""Rules for convert and bitcast-convert."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.element_type import ElementType
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.rewriting.rules.constants import scalar_of, wrapped
from hloopt.passes.rewriting.rules.pattern import constant, op
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.signatures import is_typed_as_its_operand

_MANTISSA = {
    **{"f64": (11, 52), "f32": (8, 23), "f16": (5, 10), "bf16": (8, 7), "f8e5m2": (5, 2)},
    **{"f8e4m3fn": (4, 3), "f8e4m3": (4, 3), "f8e3m4": (3, 4), "f8e4m3b11fnuz": (4, 3)},
    **{"f8e5m2fnuz": (5, 2), "f8e4m3fnuz": (4, 3), "f4e2m1fn": (2, 1)},
}
"""Bits of exponent and mantissa."""
_IEEE = frozenset(("f64", "f32", "f16", "bf16", "f8e5m2", "f8e4m3", "f8e3m4"))
"""Types with infinities, NaN with a sign, and -0."""


def holds_all(wide: ElementType, narrow: ElementType) -> bool:
    """Whether a type holds all values of another, so that converting there and back is exact."""
    if wide is narrow:
        return True
    if narrow.kind == "pred":
        return wide.kind != "pred"
    if narrow.is_integral:
        bits = narrow.bits - (narrow.kind == "signed")
        if wide.is_integral:
            if narrow.kind == "signed" and wide.kind == "unsigned":
                return False
            return wide.bits - (wide.kind == "signed") >= bits
        if wide.is_floating and wide.name in _MANTISSA:
            exponent, mantissa = _MANTISSA[wide.name]
            return mantissa + 1 >= bits and 1 << (exponent - 1) > bits
        return wide.kind == "complex" and holds_all(_part(wide), narrow)
    if narrow.is_floating and wide.is_floating:
        if wide.name not in _IEEE or narrow.name not in _MANTISSA:
            return False
        old, new = _MANTISSA[narrow.name], _MANTISSA[wide.name]
        if narrow.name not in _IEEE:
            return new[0] > old[0] and new[1] >= old[1]
        return new[0] >= old[0] and new[1] >= old[1]
    if wide.kind == "complex":
        return holds_all(_part(wide), _part(narrow) if narrow.kind == "complex" else narrow)
    return False


def _part(kind: ElementType) -> ElementType:
    from hloopt.ir.shapes.element_type import ELEMENT_TYPES

    return ELEMENT_TYPES["f32" if kind.bits == 64 else "f64"]


@rule(op("convert", "x"), dynamic=True, signature=is_typed_as_its_operand)
def convert_to_same_type(m: AlgsimpMatch) -> Result:
    """A convert to the type of its operand → operand."""
    return m.if_compatible(m.x)


@rule(op("convert", op("convert", "x").named("inner")), dynamic=True)
def convert_and_back(m: AlgsimpMatch) -> Result:
    """convert(convert(x)) → x, back to the type of x, where the type between holds all its
    values."""
    own, between = m.x.shape.element_type, m.inner.shape.element_type
    if own is not m.root.shape.element_type or own is None or between is None:
        return None
    if not holds_all(between, own):
        return Missed(f"{between.name} does not hold all values of {own.name}")
    return m.if_compatible(m.x)


@rule(op("convert", constant().one_use().named("c")), option="use_convert_constant_folding")
def convert_of_constant(m: AlgsimpMatch) -> Result:
    """A convert of a constant with one user → constant, where it does not become larger."""
    kind, own = m.root.shape.element_type, m.c.shape.element_type
    if kind is None or own is None or not 8 <= kind.bits <= own.bits or ELIDED in m.c.payload:
        return None
    value = scalar_of(m.c)
    if not m.c.shape.dimensions and isinstance(value, int) and kind.is_integral:
        text = str(wrapped(int(value), kind))
    else:
        import numpy as np

        from hloopt.interpreter.evaluation import evaluate_instruction
        from hloopt.interpreter.limits import Limits
        from hloopt.interpreter.literals import is_writable, literal_text, literal_value
        from hloopt.interpreter.plan import Plans

        with np.errstate(all="ignore"):
            operand = literal_value(m.c.payload, m.c.shape)
            result = evaluate_instruction(m.root, [operand], Plans(Limits(1000, 1 << 32)))
        if not is_writable(result):
            return Missed("a literal has no room for complex NaNs")
        text = literal_text(result, m.root.shape)
    return m.build.make("constant", shape=m.root.shape, payload=text)


_ALWAYS = (Opcode.ADD, Opcode.SUBTRACT, Opcode.MULTIPLY)
_UNSIGNED = (Opcode.DIVIDE, Opcode.REMAINDER)


@rule(
    op(
        "convert",
        op(
            ("add", "subtract", "multiply", "divide", "remainder"),
            op("convert", "a").one_use().named("ca"),
            op("convert", "b").one_use().named("cb"),
        ).one_use().named("op"),
    )
)  # fmt: skip
def narrow_operation(m: AlgsimpMatch) -> Result:
    """convert(op(convert(a), convert(b))) → op(a, b) in the narrow integer type, where the wide one
    holds it: add, subtract, multiply, and unsigned divide and remainder."""
    return _narrowed(m, m.a, m.b)


def _narrowed(m: AlgsimpMatch, a: Instruction, b: Instruction) -> Result:
    narrow, wide = m.root.shape.element_type, m.op.shape.element_type
    if narrow is None or wide is None or not (narrow.is_integral and wide.is_integral):
        return None
    if narrow.kind != wide.kind or min(narrow.bits, wide.bits) < 8:
        return None
    if a.shape.element_type is not narrow or b.shape.element_type is not narrow:
        return None
    if wide.bits < narrow.bits or wide is narrow:
        return None
    if m.op.opcode in _UNSIGNED and narrow.kind != "unsigned":
        return Missed("a quotient of signed integers may not fit the narrow type")
    return m.build.make(m.op.opcode, a, b, shape=m.root.shape)


@rule(op("bitcast-convert", op("bitcast-convert", "x")))
def bitcast_convert_twice(m: AlgsimpMatch) -> Result:
    """bitcast-convert(bitcast-convert(x)) → bitcast-convert(x)."""
    if _steps(m.x.shape, m.root.shape) is None:
        return None
    return m.build.make("bitcast-convert", m.x, shape=m.root.shape)


def _steps(before: Shape, after: Shape) -> int | None:
    """The change of rank in one bitcast-convert between two shapes; None where there is none."""
    old, new = before.element_type, after.element_type
    if old is None or new is None:
        return None
    a, b = before.dimensions, after.dimensions
    if old.bits == new.bits:
        return 0 if a == b else None
    if old.bits > new.bits:
        return 1 if (*a, old.bits // new.bits) == b else None
    return -1 if (*b, new.bits // old.bits) == a else None


@rule(op("bitcast-convert", op("concatenate").named("joined")))
def bitcast_convert_of_concatenate(m: AlgsimpMatch) -> Result:
    """bitcast-convert(concatenate(bitcast-convert(x), …)) → concatenate(x, …), where every x has
    the type of the result."""
    sources: list[Instruction] = []
    for part in m.joined.operands:
        if part.opcode is not Opcode.BITCAST_CONVERT:
            return None
        (source,) = part.operands
        if source.shape.element_type is not m.root.shape.element_type:
            return None
        if source.shape.dimensions != part.shape.dimensions:
            return None
        sources.append(source)
    if m.joined.shape.dimensions != m.root.shape.dimensions:
        return None
    return m.build.clone(m.joined, sources, m.root.shape)


@rule(
    op("bitcast-convert", "x"),
    layouts="sensitive",
    option="rewrite_no_op_bitcast_convert_to_bitcast",
)
def bitcast_convert_to_bitcast(m: AlgsimpMatch) -> Result:
    """A bitcast-convert that moves nothing in memory → bitcast: shapes differ in type only, or the
    dimension that comes or goes is minor-most and densely packed."""
    before, after = m.x.shape, m.root.shape
    if before.layout == after.layout and before.dimensions == after.dimensions:
        return m.build.bitcast(m.x, after)
    wide, narrow = (before, after) if before.rank < after.rank else (after, before)
    if narrow.rank != wide.rank + 1 or narrow.element_type is None:
        return None
    order = narrow.layout.minor_to_major
    if not order or order[0] != narrow.rank - 1 or order[1:] != wide.layout.minor_to_major:
        return None
    if narrow.layout.tiles or wide.layout.tiles:
        return None
    bits = narrow.element_type.bits
    if bits % 8 and narrow.layout.element_bits != bits:
        return Missed(f"elements of {narrow.text} are not packed")
    return m.build.bitcast(m.x, after)


@rule(op("bitcast-convert", "x"), dynamic=True)
def bitcast_convert_to_same_type(m: AlgsimpMatch) -> Result:
    """A bitcast-convert to the shape of its operand → operand."""
    return m.if_compatible(m.x) if m.same_shape(m.x, m.root) else None


RULES = (
    convert_to_same_type,
    convert_and_back,
    convert_of_constant,
    narrow_operation,
    bitcast_convert_twice,
    bitcast_convert_of_concatenate,
    bitcast_convert_to_bitcast,
    bitcast_convert_to_same_type,
)
