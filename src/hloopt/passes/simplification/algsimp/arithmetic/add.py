"""Rules for add."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.pattern import constant, op, splat
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.terms import (
    is_constant,
    is_integer,
    is_scalar_constant,
    out_of_range,
    power_of_two,
    shared_scalar,
)

_CONSTANT = op(("constant", "broadcast"))


@rule(op("add", "a", splat(0), any_order=True), floats="finite", dynamic=True)
def add_zero(m: AlgsimpMatch) -> Result:
    """A + 0 → A. A -0 stays -0 instead of becoming 0."""
    return m.if_compatible(m.a)


@rule(op("add", constant().named("c"), "a"))
def add_constant_to_right(m: AlgsimpMatch) -> Result:
    """C + A → A + C, so that other rules find the constant on the right."""
    if m.a.opcode is Opcode.CONSTANT:
        return None
    return m.build.make("add", m.a, m.c, shape=m.root.shape)


@rule(op("add", op("add", "a", _CONSTANT.named("c")), _CONSTANT.named("d")), floats="finite")
def add_merge_constants(m: AlgsimpMatch) -> Result:
    """(A + C1) + C2 → A + (C1 + C2): the constants are added once, by constant folding."""
    if is_constant(m.a):
        return None
    total = _total(m, m.c, m.d)
    if not isinstance(total, Instruction):
        return total
    return m.build.make("add", m.a, total, shape=m.root.shape)


@rule(op("add", op("subtract", _CONSTANT.named("c"), "a"), _CONSTANT.named("d")), floats="finite")
def add_merge_constants_of_subtract(m: AlgsimpMatch) -> Result:
    """(C1 - A) + C2 → (C1 + C2) - A."""
    if is_constant(m.a):
        return None
    total = _total(m, m.c, m.d)
    if not isinstance(total, Instruction):
        return total
    return m.build.make("subtract", total, m.a, shape=m.root.shape)


@rule(op("add", "a", op("subtract", "b", "a"), any_order=True), floats="finite")
def add_of_subtract(m: AlgsimpMatch) -> Result:
    """A + (B - A) → B for integers; for floats, where B - A rounds or overflows, with
    enable_fast_math."""
    if not (is_integer(m.root) or m.options.enable_fast_math):
        return Missed("it would ignore rounding: enable_fast_math is off")
    return m.b


@rule(op("add", "a", op("dynamic-update-slice").named("update"), any_order=True), floats="finite")
def add_of_updated_zeros(m: AlgsimpMatch) -> Result:
    """A + dynamic-update-slice(0, u, i) → dynamic-update-slice(A, dynamic-slice(A, i) + u, i):
    only the updated part is added."""
    zeros, part, *offsets = m.update.operands
    if zeros.opcode is not Opcode.BROADCAST or shared_scalar(zeros) != 0:
        return None
    if part.shape.element_type is not m.root.shape.element_type:
        return None
    if m.a.shape.dimensions != m.root.shape.dimensions:
        return None
    read = m.build.dynamic_slice(m.a, offsets, part.shape.dimensions, part.shape)
    added = m.build.make("add", read, part, shape=part.shape)
    return m.build.make("dynamic-update-slice", m.a, added, *offsets, shape=m.root.shape)


def _shares_a_factor(add: Instruction) -> bool:
    """Whether two products with no other user have a factor in common."""
    x, y = add.operands
    if len(x.users) > 1 or len(y.users) > 1 or x is y:
        return False
    return not {*x.operands}.isdisjoint(y.operands)


@rule(
    op("add", op("multiply").named("x"), op("multiply").named("y")).where(_shares_a_factor),
    floats="finite",
)
def factor_sum(m: AlgsimpMatch) -> Result:
    """A·C + B·C → (A + B)·C: exact for integers and where C is a power of two, overflow and
    underflow aside; for other floats with enable_floats_are_real."""
    for c_of_x in (1, 0):
        for c_of_y in (1, 0):
            c = m.x.operands[c_of_x]
            if c is not m.y.operands[c_of_y]:
                continue
            if not (
                is_integer(m.root)
                or m.options.enable_floats_are_real
                or power_of_two(c) is not None
            ):
                return Missed(f"%{c.name} is not a power of two")
            a, b = m.x.operands[1 - c_of_x], m.y.operands[1 - c_of_y]
            total = m.build.make("add", a, b, shape=m.root.shape)
            return m.build.make("multiply", total, c, shape=m.root.shape)
    return None


def _total(m: AlgsimpMatch, c: Instruction, d: Instruction) -> Result:
    """The sum of two constants; of broadcasts of scalar constants as a broadcast."""
    if reason := out_of_range("add", c, d):
        return Missed(reason)
    if c.opcode is Opcode.CONSTANT and d.opcode is Opcode.CONSTANT:
        if c.shape.dimensions != d.shape.dimensions:
            return None
        return m.build.make("add", c, d, shape=c.shape)
    if not (is_scalar_constant(c) and is_scalar_constant(d)):
        return None
    scalars = [x.operands[0] if x.opcode is Opcode.BROADCAST else x for x in (c, d)]
    return m.build.fill(m.build.make("add", *scalars), m.root.shape)


RULES = (
    add_zero,
    add_constant_to_right,
    add_merge_constants,
    add_merge_constants_of_subtract,
    add_of_subtract,
    add_of_updated_zeros,
    factor_sum,
)
