"""Comparators of sorts that order by descending values."""

from __future__ import annotations

from hloopt.ir.attributes.typed import direction_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules import op, scalar_constant
from hloopt.passes.rewriting.rules.constants import splat_value

_LARGEST = (1 << 31) - 1
_BITS = op("bitcast-convert", "x")
_SIGNED = _BITS.of_type("s32")
_IS_NEGATIVE = op("compare", _SIGNED, scalar_constant(0)).where(lambda c: direction_of(c) == "LT")
_TOTAL_ORDERS = (
    op(
        "select", _IS_NEGATIVE,
        op("xor", _SIGNED, scalar_constant(_LARGEST), any_order=True), _SIGNED,
    ),
    op(
        "select", _IS_NEGATIVE,
        op("bitcast-convert", op("subtract", scalar_constant(_LARGEST), _BITS)), _SIGNED,
    ),
)  # fmt: skip
"""Floats as integers in the same order: of negative ones all bits but the sign are inverted."""


def is_descending(comparator: Computation) -> bool:
    """Whether a comparator puts the larger of its first two parameters first.

    Floats are compared as they are, or as integers that have their order. O(1).
    """
    root = comparator.root
    if root.opcode is Opcode.SELECT and splat_value(root.operands[0]) is True:
        root = root.operands[1]
    if root.opcode is not Opcode.COMPARE or direction_of(root) != "GT":
        return False
    return [_compared(operand) for operand in root.operands] == comparator.parameters[:2]


def _compared(value: Instruction) -> Instruction | None:
    """The value that is compared by itself, or by an integer in the same order."""
    for pattern in _TOTAL_ORDERS:
        found = pattern.match(value)
        if found is not None:
            value = found["x"]
            break
    while value.opcode is Opcode.CONVERT and _is_exact(value):
        (value,) = value.operands
    return value


def _is_exact(convert: Instruction) -> bool:
    """Whether a convert keeps the order of all values: from bf16 or f16 to f32."""
    source = convert.operands[0].shape.type_name
    return convert.shape.type_name == "f32" and source in ("bf16", "f16")
