"""Whether values can be converted before they are reduced instead of after it."""

from __future__ import annotations

from hloopt.ir.clone import clone_computation
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.reduction_kind import ReductionKind
from hloopt.ir.shapes.element_type import ElementType
from hloopt.ir.shapes.shape import array_shape

_WITH_WRAP_AROUND = (ReductionKind.SUM, ReductionKind.PRODUCT)


def commutes(convert: Instruction, kind: ReductionKind) -> bool:
    """Whether converting what is reduced gives what converting the result does.

    True for floating-point numbers, up to rounding, and for sums and products of integers where
    the result has no more bits, so that both wrap around alike.
    """
    source, target = _types(convert)
    if source.is_floating and target.is_floating:
        return True
    are_integral = source.is_integral and target.is_integral
    return are_integral and kind in _WITH_WRAP_AROUND and target.bits <= source.bits


def can_be_undone(convert: Instruction, kind: ReductionKind) -> bool:
    """Whether converting, converting back and reducing gives, converted, what reducing does.

    True where `commutes` is, and for integers that get no fewer bits.
    """
    source, target = _types(convert)
    are_integral = source.is_integral and target.is_integral
    return commutes(convert, kind) or (are_integral and target.bits >= source.bits)


def reduction_of_type(reduction: Computation, type_name: str) -> Computation:
    """A reduction of one operation for another element type: itself where that is its own.

    O(instructions).
    """
    root = reduction.root
    if root.shape.type_name == type_name:
        return reduction
    scalar = array_shape(type_name)
    copy, copies = clone_computation(reduction)
    for instruction in copies.values():
        instruction.set_shape(scalar)
    return copy


def _types(convert: Instruction) -> tuple[ElementType, ElementType]:
    source, target = convert.operands[0].shape.element_type, convert.shape.element_type
    assert source is not None
    assert target is not None
    return source, target


_WIDER = {
    "bf16": ("f32", "f64"),
    "f16": ("f32", "f64"),
    "f32": ("f64",),
}


def is_widening(convert: Instruction) -> bool:
    """Whether a convert goes to a floating-point type that holds all values as they are."""
    return convert.shape.type_name in _WIDER.get(convert.operands[0].shape.type_name, ())
