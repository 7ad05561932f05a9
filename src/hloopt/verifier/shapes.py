"""Rules about shapes that hold for all opcodes, or that operands alone do not decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attribute_values import parse_int
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape import Shape, same_kind
from hloopt.ir.shape_inference.operation import show
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken

_MAY_MIX = frozenset(
    (
        *(Opcode.ADD_DEPENDENCY, Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.CALL),
        *(Opcode.ALL_GATHER_DONE, Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.ALL_TO_ALL),
        *(Opcode.ALL_REDUCE_DONE, Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
        *(Opcode.BITCAST, Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START),
        *(Opcode.COLLECTIVE_PERMUTE_DONE, Opcode.CONDITIONAL, Opcode.CONVOLUTION),
        *(Opcode.COPY_START, Opcode.COPY_DONE, Opcode.CUSTOM_CALL, Opcode.DOMAIN, Opcode.DOT),
        *(Opcode.FUSION, Opcode.GET_TUPLE_ELEMENT, Opcode.INFEED, Opcode.OPT_BARRIER),
        *(Opcode.OUTFEED, Opcode.RAGGED_DOT, Opcode.RECV, Opcode.RECV_DONE, Opcode.SCALED_DOT),
        *(Opcode.REDUCE_WINDOW, Opcode.SCAN, Opcode.SEND, Opcode.SEND_DONE, Opcode.SORT),
        *(Opcode.TUPLE, Opcode.WHILE),
    )
)
"""Opcodes whose operands stand beside each other, or that convert them."""


def check_precisions(instruction: Instruction, setting: Setting) -> None:
    """Floating-point operands have one type, unless `allow_mixed_precision`."""
    if instruction.opcode in _MAY_MIX:
        return
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
    fits = same_kind if setting.options.allow_mixed_precision else _same_type
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


def _same_type(a: Shape, b: Shape) -> bool:
    return a.element_type is b.element_type


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
    """A scaled-dot has at least one scale that is not a scalar."""
    scales = [operand.shape for operand in instruction.operands[2:]]
    if scales and all(scale.is_scalar for scale in scales):
        raise HloVerifyError("At least one of the scales should be not a scalar in scaled-dot")
