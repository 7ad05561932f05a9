"""Rules for compare and clamp."""

from __future__ import annotations

from hloopt.ir.attributes.typed import direction_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.constants import scalar_of
from hloopt.passes.rewriting.rules.pattern import op, scalar_constant, splat
from hloopt.passes.rewriting.rules.rule import EDITED, Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.signatures import reads_pred
from hloopt.passes.simplification.algsimp.terms import (
    is_integer,
    is_non_negative,
    kind_of,
)

MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


@rule(op("compare", "x", splat(0)))
def compare_with_zero(m: AlgsimpMatch) -> Result:
    """x < 0 → false and x ≥ 0 → true for unsigned x, and for x that cannot be negative."""
    return _known_sign(m, direction_of(m.root))


@rule(op("compare", splat(0), "x"))
def compare_zero_with(m: AlgsimpMatch) -> Result:
    """0 > x → false and 0 ≤ x → true, as for the mirrored comparison."""
    return _known_sign(m, MIRRORED.get(direction_of(m.root), ""))


def _known_sign(m: AlgsimpMatch, direction: str) -> Result:
    if direction not in ("LT", "GE"):
        return None
    if kind_of(m.x) != "unsigned" and not is_non_negative(m.x, m.options):
        return None
    if direction == "GE" and kind_of(m.x) == "float":
        return Missed(f"%{m.x.name} may be NaN, which is not at least 0")
    if _is_total(m.root):
        return Missed("it orders -0 and NaN, too")
    return m.build.splat(direction == "GE", m.root.shape)


def _is_total(compare: Instruction) -> bool:
    return compare.attributes.get("type") == "TOTALORDER"


@rule(op("compare", "x", "x"), signature=lambda root: is_integer(root.operands[0]))
def compare_with_itself(m: AlgsimpMatch) -> Result:
    """x op x for integers: false for LT, GT, NE; true for EQ, GE, LE."""
    return m.build.splat(direction_of(m.root) in ("EQ", "GE", "LE"), m.root.shape)


@rule(op("compare", "x", splat(False), any_order=True), dynamic=True, signature=reads_pred)
def compare_ne_false(m: AlgsimpMatch) -> Result:
    """x ≠ false → x, for pred."""
    return m.if_compatible(m.x) if direction_of(m.root) == "NE" else None


@rule(op("compare", "x", splat(True), any_order=True), dynamic=True, signature=reads_pred)
def compare_eq_true(m: AlgsimpMatch) -> Result:
    """x = true → x, for pred."""
    return m.if_compatible(m.x) if direction_of(m.root) == "EQ" else None


@rule(
    op(
        "compare",
        op("select", op("compare").named("inner"), splat(1), splat(0)),
        splat(0),
        any_order=True,
    )
)
def compare_of_select(m: AlgsimpMatch) -> Result:
    """select(a ≥ b, 1, 0) ≠ 0 → a ≥ b."""
    if direction_of(m.root) != "NE" or direction_of(m.inner) != "GE":
        return None
    return m.if_compatible(m.inner)


@rule(op("compare", op("maximum", "a", "b").named("max"), "x"))
def compare_gt_of_max(m: AlgsimpMatch) -> Result:
    """max(a, b) > a → b > a, and max(a, b) > b → a > b."""
    if direction_of(m.root) != "GT" or m.x not in m.max.operands:
        return None
    other = m.b if m.x is m.a else m.a
    return _compare_instead(m, 0, other)


@rule(op("compare", "x", op("minimum", "a", "b").named("min")))
def compare_gt_of_min(m: AlgsimpMatch) -> Result:
    """a > min(a, b) → a > b, and b > min(a, b) → b > a."""
    if direction_of(m.root) != "GT" or m.x not in m.min.operands:
        return None
    other = m.b if m.x is m.a else m.a
    return _compare_instead(m, 1, other)


def _compare_instead(m: AlgsimpMatch, number: int, other: Instruction) -> Result:
    if kind_of(m.x) == "float" and not m.options.minmax_propagate_nan:
        return Missed("a maximum or minimum of NaN may be a number: minmax_propagate_nan is off")
    if other.shape.element_type is not m.x.shape.element_type:
        return None
    m.touched.append(m.root)
    m.root.replace_operand(number, other)
    return EDITED


@rule(op("clamp", "l", op("clamp", "l", "x", "h").named("inner"), "h"), dynamic=True)
def clamp_twice(m: AlgsimpMatch) -> Result:
    """clamp(l, clamp(l, x, h), h) → clamp(l, x, h)."""
    return m.if_compatible(m.inner)


@rule(op("clamp", scalar_constant(0), op(("partition-id", "replica-id")).named("id"),
         scalar_constant().named("h")))  # fmt: skip
def clamp_of_device_id(m: AlgsimpMatch) -> Result:
    """clamp(0, partition-id, C) → partition-id where there are at most C + 1 partitions, and the
    same for replicas."""
    module = m.root.parent.module
    count = module.num_partitions if m.id.opcode is Opcode.PARTITION_ID else module.replica_count
    bound = scalar_of(m.h)
    if bound is None or isinstance(bound, complex) or count > bound + 1:
        return None
    return m.id


RULES = (
    compare_with_zero,
    compare_zero_with,
    compare_with_itself,
    compare_ne_false,
    compare_eq_true,
    compare_of_select,
    compare_gt_of_max,
    compare_gt_of_min,
    clamp_twice,
    clamp_of_device_id,
)
