"""Composite calls become the operations that they stand for."""

from __future__ import annotations

from hloopt.diagnostics import HloError, PassRefused, counted
from hloopt.ir.attributes.frontend_attributes import frontend_attributes, set_frontend_attributes
from hloopt.ir.attributes.typed import is_composite
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.block_scaling import scale_fits
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shape_inference import check_shape
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.precision.block_scaling.mlir_attributes import (
    dictionary_value,
    parse_array,
    parse_integer,
)
from hloopt.passes.rewriting.replace import replace_instruction

_NAME = "xla.scaled_dot"
_PREFIX = "composite."
_VALUES = ("f8e4m3fn", "f8e5m2", "f4e2m1fn")
_BLOCK_UNIT = 32
"""Blocks are a multiple of so many values."""
_Numbers = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The contracting dimensions of both sides, and their batch dimensions."""


@register(
    "composite-rewriter",
    preserves="rounding",
    xla=XlaPass("CompositeRewriter", "xla/backends/gpu/transforms/composite_rewriter.h"),
)
class CompositeRewriter(ModulePass):
    """Replace composite calls named `xla.scaled_dot` by scaled-dots.

    That is how StableHLO writes them: a call with its dimension numbers in the frontend attribute
    `composite.attributes`, of a computation that does the same with other operations, which stays.
    Each side has values of f8e4m3fn, f8e5m2 or f4e2m1fn and scales of f8e8m0fnu, one for a multiple
    of 32 values; or values of bf16 and the constant 1 as scale, in bf16 and in its rank. Both have
    one contracting dimension and at most one batch dimension. Other calls stay.

    The pass ends with an error where dimension numbers are missing or cannot be read. What the call
    says of its value is kept (XLA drops it). Linear in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        touched: dict[Computation, None] = {}
        for call in list(module.instructions(Opcode.CALL)):
            attributes = _composite(call)
            if attributes is None:
                continue
            numbers = _dimension_numbers(call, attributes)
            if reason := _why_not(call, numbers):
                context.missed(call, reason)
            elif context.apply(call, "replaced by a scaled-dot"):
                _replace(call, numbers)
                touched[call.parent] = None
        repair_schedule(touched)
        return module.version != before


def _composite(call: Instruction) -> dict[str, str] | None:
    """The frontend attributes of a call that stands for a scaled-dot; None for others."""
    if not is_composite(call) or call.parent.is_fusion:
        return None
    attributes = frontend_attributes(call)
    return attributes if attributes.get(f"{_PREFIX}name") == _NAME else None


def _dimension_numbers(call: Instruction, attributes: dict[str, str]) -> _Numbers:
    """The dimension numbers of a call. Raises PassRefused."""
    text = attributes.get(f"{_PREFIX}attributes")
    if text is None:
        raise _refusal(call, f"composite.attributes is not set for {_NAME}")
    try:
        value = dictionary_value(text, "dimension_numbers")
        numbers = None if value is None else parse_array(value)
    except ValueError as error:
        raise _refusal(call, f"composite.attributes is not a dictionary: {error}") from None
    if numbers is None:
        raise _refusal(call, "dimension_numbers are not set in composite attributes")
    if not isinstance(numbers, list) or len(numbers) != 2:
        raise _refusal(call, "dimension_numbers must be array of size 2")
    lists = []
    for pair in numbers:
        if not isinstance(pair, list) or not all(isinstance(side, list) for side in pair):
            raise _refusal(call, "Invalid dimension_numbers structure")
        if len(pair) != 2:
            raise _refusal(call, "invalid contracting or batch dimensions")
        for side in pair:
            found = (parse_integer(number) for number in side)
            lists.append(tuple(number for number in found if number is not None))
    lhs, rhs, lhs_batch, rhs_batch = lists
    return lhs, rhs, lhs_batch, rhs_batch


def _refusal(call: Instruction, reason: str) -> PassRefused:
    return PassRefused(f"%{call.name}: {reason}", span=call.parent.module.span_of(call))


def _why_not(call: Instruction, numbers: _Numbers) -> str | None:
    """The reason why a call stays, or None where a scaled-dot can take its place."""
    lhs, rhs, lhs_batch, rhs_batch = numbers
    if len(call.operands) != 4:
        return f"it has {counted(len(call.operands), 'operand')}, not four"
    if (len(lhs), len(rhs)) != (1, 1):
        return f"it contracts {format_ints(lhs)} and {format_ints(rhs)}, not one of each side"
    if max(len(lhs_batch), len(rhs_batch)) > 1:
        return "it has more than one batch dimension"
    for values, scale, contracted in zip(
        call.operands[:2], call.operands[2:], (lhs, rhs), strict=True
    ):
        if not _is_side(values, scale, *contracted):
            return (
                f"%{values.name}, {values.shape.text}, with the scale %{scale.name}, "
                f"{scale.shape.text}, is not a side of a scaled-dot"
            )
    shapes = [operand.shape for operand in call.operands]
    try:
        check_shape(Opcode.SCALED_DOT, call.shape, shapes, _attributes(numbers))
    except HloError as error:
        return f"a scaled-dot would be wrong: {error.message}"
    return None


def _is_side(values: Instruction, scale: Instruction, contracted: int) -> bool:
    sizes, counts = values.shape.dimensions, scale.shape.dimensions
    if not 0 <= contracted < len(sizes) or len(sizes) != len(counts):
        return False
    types = values.shape.type_name, scale.shape.type_name
    if types == ("bf16", "bf16"):
        return scale.opcode is Opcode.CONSTANT and set(counts) == {1} and _is_one(scale)
    if types[0] not in _VALUES or types[1] != "f8e8m0fnu":
        return False
    return scale_fits(scale.shape, values.shape) and (
        counts[contracted] > 0 and sizes[contracted] // counts[contracted] % _BLOCK_UNIT == 0
    )


def _is_one(scale: Instruction) -> bool:
    text = canonical_literal(scale.payload, scale.shape)
    return text.strip("{} ") == "1"


def _attributes(numbers: _Numbers) -> dict[str, str]:
    lhs, rhs, lhs_batch, rhs_batch = numbers
    named = {
        "lhs_batch_dims": lhs_batch,
        "lhs_contracting_dims": lhs,
        "rhs_batch_dims": rhs_batch,
        "rhs_contracting_dims": rhs,
    }
    return {name: format_ints(dimensions) for name, dimensions in named.items() if dimensions}


def _replace(call: Instruction, numbers: _Numbers) -> None:
    others = {k: v for k, v in frontend_attributes(call).items() if not k.startswith(_PREFIX)}
    set_frontend_attributes(call, others)
    dot = call.parent.add(
        Opcode.SCALED_DOT, call.shape, call.operands, attributes=_attributes(numbers)
    )
    replace_instruction(call, dot)
