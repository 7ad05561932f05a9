"""Rules about shapes that hold for all opcodes, or that operands alone do not decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.values import parse_int, parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.shape_inference.operation import show
from hloopt.ir.shapes.shape import Shape, same_kind, same_type
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken


def check_precisions(instruction: Instruction, setting: Setting) -> None:
    """Floating-point operands have one type, unless `allow_mixed_precision`."""
    seen = {}
    for operand in instruction.operands:
        for leaf in operand.shape.leaves():
            kind = leaf.element_type
            if kind is not None and kind.is_floating:
                seen[kind.name] = operand.name
    if len(seen) > 1:
        operands = ", ".join(f"{name} (%{operand})" for name, operand in seen.items())
        raise HloVerifyError(
            "Seen floating point types of different precisions, but mixed precision is "
            f"disallowed: {operands}",
            help="convert one of them, or allow mixed precision, as TPU compilers do",
        )


def is_unbounded(shape: Shape) -> bool:
    """Whether a dimension of a part of `shape` has no bound."""
    return any(min(leaf.dimensions, default=0) < 0 for leaf in shape.leaves())


def check_bounds(instruction: Instruction, setting: Setting) -> None:
    """No dimension is unbounded, but for opcodes in `supported_unbounded_dynamic_ops`."""
    supported = setting.options.supported_unbounded_dynamic_ops
    if supported == "all" or instruction.opcode in supported:
        return
    if is_unbounded(instruction.shape):
        raise HloVerifyError(
            "Unbounded dynamism is disabled for instruction: its shape is "
            f"{show(instruction.shape)}"
        )


@cache
def has_buffers(shape: Shape) -> bool:
    """Whether `shape` is or holds a buffer."""
    return any(leaf.is_buffer for leaf in shape.leaves())


def check_entry_buffers(
    module: Module, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """Neither parameters nor result of the entry computation are buffers."""
    for instruction in (*found, module.entry.root):
        if has_buffers(instruction.shape):
            yield broken(
                instruction,
                f"buffers aren't allowed in this context: {instruction.shape.text} of the entry "
                "computation",
            )


def check_rng(instruction: Instruction, setting: Setting) -> None:
    """An rng takes two scalars of its result's element type: bounds, or mean and deviation."""
    shapes = [operand.shape for operand in instruction.operands]
    if len(shapes) != 2:
        raise HloVerifyError(f"Expected 2 operands for rng instruction, found {len(shapes)}")
    if not all(shape.is_scalar for shape in shapes):
        raise HloVerifyError("Expected scalar types for the two operands of Rng instruction")
    result = instruction.shape
    fits = same_kind if setting.options.allow_mixed_precision else same_type
    if not result.is_array or not all(fits(shape, result) for shape in shapes):
        raise HloVerifyError(
            "Expected compatible element types for the result and the two operands of Rng "
            f"instruction: {result.type_name} of {shapes[0].type_name} and {shapes[1].type_name}"
        )
    kind = result.element_type
    assert kind is not None
    is_normal = instruction.attributes.get("distribution", "").lower() == "rng_normal"
    if is_normal and not kind.is_floating:
        raise HloVerifyError(
            "Element type not supported. Expected element to be FloatingPointType for RngNormal, "
            f"not {kind.name}"
        )
    if not (kind.is_floating or kind.is_integral or kind.kind == "pred"):
        raise HloVerifyError(
            "Element type not supported. Expected element to be of floating point type, integral "
            f"type or predicate type for RngUniform, not {kind.name}"
        )


def check_iota(instruction: Instruction, setting: Setting) -> None:
    """An iota is an array of numbers that count along one of its dimensions."""
    shape = instruction.shape
    if not shape.is_array:
        raise HloVerifyError("Iota does not support non-array result.")
    kind = shape.element_type
    assert kind is not None
    if kind.name == "pred":
        raise HloVerifyError(
            "Only support iota of integral, floating point or complex primitive types, got "
            f"{kind.name.upper()}"
        )
    if shape.rank and parse_int(instruction.attributes["iota_dimension"]) < 0:
        raise HloVerifyError(
            "The iota dimension cannot go beyond the operation rank or be negative."
        )


def check_comparison(instruction: Instruction, setting: Setting) -> None:
    """The type of a comparison fits its operands: FLOAT or TOTALORDER, SIGNED, UNSIGNED."""
    stated = instruction.attributes["type"]
    kind = instruction.operands[0].shape.element_type
    if kind is None:
        return
    if kind.kind in ("float", "complex"):
        expected: tuple[str, ...] = ("FLOAT", "TOTALORDER")
    elif kind.kind in ("pred", "unsigned"):
        expected = ("UNSIGNED",)
    else:
        expected = ("SIGNED",)
    if stated not in expected:
        raise HloVerifyError(
            f"Expected comparison type {' or '.join(expected)}, actual: {stated}, operand: "
            f"{show(instruction.operands[0].shape)}"
        )


def check_scales(instruction: Instruction, setting: Setting) -> None:
    """A scaled-dot contracts one dimension, and at least one of its sides has scales.

    The scales of a side have its rank, and their sizes divide those of the side.
    """
    shapes = [operand.shape for operand in instruction.operands]
    if len(shapes) != 4:
        return  # reported by shape inference
    scales = shapes[2:]
    if all(scale.is_scalar for scale in scales):
        raise HloVerifyError("At least one of the scales should be not a scalar in scaled-dot")
    for number, (side, scale) in enumerate(zip(shapes[:2], scales, strict=True)):
        if _is_no_scale(scale, side):
            continue
        name, scale_name = (instruction.operands[n].name for n in (number, number + 2))
        if scale.rank != side.rank:
            raise HloVerifyError(
                f"Scale operand {scale_name} has a different number of dimensions than operand "
                f"{name}: {show(scale)} for {show(side)}"
            )
        for dimension, (size, parts) in enumerate(
            zip(side.dimensions, scale.dimensions, strict=True)
        ):
            if min(size, parts) >= 0 and (size % parts if parts else size):
                raise HloVerifyError(
                    f"Dimension {dimension} of operand {name} should be a multiple of dimension "
                    f"{dimension} of scale operand {scale_name}: {show(side)}, {show(scale)}"
                )
        contracting = parse_ints(
            instruction.attributes.get(f"{('lhs', 'rhs')[number]}_contracting_dims", "{}")
        )
        if len(contracting) != 1:
            raise HloVerifyError(
                f"Scaled dot expects one contracting dimension, operand {name} has "
                f"{len(contracting)}"
            )


def _is_no_scale(scale: Shape, side: Shape) -> bool:
    """Whether a scale marks its side as not scaled: a single bf16 for a larger bf16 array."""
    are_bf16 = scale.type_name == side.type_name == "bf16"
    return are_bf16 and set(scale.dimensions) <= {1} and not set(side.dimensions) <= {1}
