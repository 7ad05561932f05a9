"""Rules for select, and, or, xor."""

from __future__ import annotations

from hloopt.analysis.equality import Equality
from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir.attributes.typed import direction_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.constants import scalar_of
from hloopt.passes.rewriting.rules.pattern import op, splat
from hloopt.passes.rewriting.rules.rule import Result, rule
from hloopt.passes.simplification.algsimp.arithmetic.compare import MIRRORED
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.shapes import is_effective_scalar
from hloopt.passes.simplification.algsimp.terms import is_integer, is_pred


@rule(op("select", "p", "x", "x"), dynamic=True)
def select_identical(m: AlgsimpMatch) -> Result:
    """select(p, x, x) → x."""
    return m.x


@rule(op("select", splat(True), "a", "b"), dynamic=True)
def select_true(m: AlgsimpMatch) -> Result:
    """select(true, a, b) → a."""
    return m.if_compatible(m.a)


@rule(op("select", splat(False), "a", "b"), dynamic=True)
def select_false(m: AlgsimpMatch) -> Result:
    """select(false, a, b) → b."""
    return m.if_compatible(m.b)


@rule(op("select", op("not", "p"), "a", "b"))
def select_not(m: AlgsimpMatch) -> Result:
    """select(not p, a, b) → select(p, b, a)."""
    return m.build.make("select", m.p, m.b, m.a, shape=m.root.shape)


@rule(op("select", "p", splat(True), splat(False)))
def select_predicate(m: AlgsimpMatch) -> Result:
    """select(p, true, false) → p, for pred."""
    return m.if_compatible(m.p) if is_pred(m.root) else None


@rule(op("select", "p", splat(False), splat(True)))
def select_not_predicate(m: AlgsimpMatch) -> Result:
    """select(p, false, true) → not p, for pred."""
    if not is_pred(m.root) or m.p.shape.dimensions != m.root.shape.dimensions:
        return None
    return m.build.make("not", m.p, shape=m.root.shape)


@rule(op("select", op("compare", "a", "b").named("compare"), "a", "b"))
def select_compared(m: AlgsimpMatch) -> Result:
    """select(compare(a, b), a, b) for pred: or for GT and GE, and for LT and LE, b for EQ, a for
    NE."""
    if not is_pred(m.root):
        return None
    match direction_of(m.compare):
        case "GT" | "GE":
            return m.build.make("or", m.a, m.b, shape=m.root.shape)
        case "LT" | "LE":
            return m.build.make("and", m.a, m.b, shape=m.root.shape)
        case "EQ":
            return m.b
        case "NE":
            return m.a
    return None


@rule(op("select", "p", op("dynamic-update-slice").one_use().named("update"), "x"))
def select_of_update(m: AlgsimpMatch) -> Result:
    """select(p, dus(xs, x, i), xs) → dus(xs, select(p at i, x, xs at i), i): only the updated part
    is selected."""
    return _select_part(m, is_first=True)


@rule(op("select", "p", "x", op("dynamic-update-slice").one_use().named("update")))
def select_of_update_mirrored(m: AlgsimpMatch) -> Result:
    """select(p, xs, dus(xs, x, i)) → dus(xs, select(p at i, xs at i, x), i)."""
    return _select_part(m, is_first=False)


def _select_part(m: AlgsimpMatch, *, is_first: bool) -> Result:
    whole, part, *offsets = m.update.operands
    if whole is not m.x or m.p is m.update:
        return None
    build, sizes = m.build, part.shape.dimensions
    predicate = m.p
    if predicate.shape.dimensions:
        predicate = build.dynamic_slice(predicate, offsets, sizes)
    before = build.dynamic_slice(whole, offsets, sizes, part.shape)
    choices = (part, before) if is_first else (before, part)
    chosen = build.make("select", predicate, *choices, shape=part.shape)
    return build.make("dynamic-update-slice", whole, chosen, *offsets, shape=m.root.shape)


@rule(op("and", "a", splat(True), any_order=True), dynamic=True)
def and_true(m: AlgsimpMatch) -> Result:
    """A & true → A, for pred."""
    return m.if_compatible(m.a) if is_pred(m.root) else None


@rule(op("and", "a", splat(0).named("zero"), any_order=True), dynamic=True)
def and_zero(m: AlgsimpMatch) -> Result:
    """A & 0 → 0."""
    return m.if_compatible(m.zero)


@rule(op("and", op("compare").named("x"), op("compare").named("y")))
def and_of_bounds(m: AlgsimpMatch) -> Result:
    """x < C1 & x < C2 → x < the smaller constant, for s32
    constants of one element; also written C > x."""
    bounds = [_upper_bound(m.x), _upper_bound(m.y)]
    if bounds[0] is None or bounds[1] is None or bounds[0][0] is not bounds[1][0]:
        return None
    compared, first = bounds[0]
    second = bounds[1][1]
    if first.shape.dimensions != second.shape.dimensions:
        return None
    a, b = scalar_of(first), scalar_of(second)
    assert isinstance(a, int)
    assert isinstance(b, int)
    least = first if a <= b else second
    return m.build.make(
        "compare", compared, least, shape=m.root.shape, attributes={"direction": "LT"}
    )


def _upper_bound(compare: Instruction) -> tuple[Instruction, Instruction] | None:
    """The value that is less than a constant, and that constant."""
    direction = direction_of(compare)
    x, bound = compare.operands
    if x.opcode is Opcode.CONSTANT:
        x, bound, direction = bound, x, MIRRORED.get(direction, "")
    if direction != "LT" or bound.shape.type_name != "s32":
        return None
    return (x, bound) if scalar_of(bound) is not None and is_effective_scalar(x.shape) else None


@rule(op("or", "a", splat(True).named("true"), any_order=True), dynamic=True)
def or_true(m: AlgsimpMatch) -> Result:
    """A | true → true, for pred."""
    return m.if_compatible(m.true) if is_pred(m.root) else None


@rule(op("or", "a", splat(0), any_order=True), dynamic=True)
def or_zero(m: AlgsimpMatch) -> Result:
    """A | 0 → A."""
    return m.if_compatible(m.a)


@rule(op("xor", "a", "b"))
def xor_itself(m: AlgsimpMatch) -> Result:
    """x ^ x → 0, also for two instructions that compute the same."""
    if not (is_integer(m.root) or is_pred(m.root)):
        return None
    if m.a is not m.b and not _are_identical(m.a, m.b):
        return None
    return m.build.splat(0, m.root.shape)


def _are_identical(a: Instruction, b: Instruction) -> bool:
    if a.opcode is not b.opcode or a.operands != b.operands or a.shape is not b.shape:
        return False
    if a.opcode is Opcode.PARAMETER or a.called or has_own_side_effect(a):
        return False
    if a.attributes.get("sharding") != b.attributes.get("sharding"):
        return False
    equality = Equality(is_layout_sensitive=True)
    if a.opcode is Opcode.CONSTANT:
        return equality.constant(a) == equality.constant(b)
    return equality.operation(a) == equality.operation(b)


@rule(op("xor", "a", splat(0), any_order=True), dynamic=True)
def xor_zero(m: AlgsimpMatch) -> Result:
    """A ^ 0 → A."""
    return m.if_compatible(m.a)


RULES = (
    select_identical,
    select_true,
    select_false,
    select_not,
    select_predicate,
    select_not_predicate,
    select_compared,
    select_of_update,
    select_of_update_mirrored,
    and_true,
    and_zero,
    and_of_bounds,
    or_true,
    or_zero,
    xor_itself,
    xor_zero,
)
