"""Scaled-dots become dots of products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hloopt.diagnostics import PassRefused
from hloopt.ir.attributes.values import parse_names
from hloopt.ir.block_scaling import common_type, scale_fits
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shapes.shape import Shape, without_packing
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.precision.block_scaling.cudnn_fusions import cudnn_supports_scaled_dot
from hloopt.passes.precision.block_scaling.steps import (
    binary,
    broadcast,
    convert,
    reshape,
    with_sizes,
)
from hloopt.passes.rewriting.replace import replace_instruction

Predicate = Callable[[Instruction], bool]
_OF_DOT = (
    *("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims"),
    "algorithm",
)
_PRECISION = "operand_precision"


@register(
    "scaled-dot-rewriter",
    preserves="rounding",
    xla=XlaPass("ScaledDotRewriter", "xla/hlo/transforms/expanders/scaled_dot_rewriter.h"),
)
class ScaledDotRewriter(ModulePass):
    """Replace scaled-dots by dots of operands times scales.

    Operand and scale of a side are converted to a common type (bf16 where both have fewer bits,
    f32 for different types of equal width, else the wider one), each scale is broadcast over its
    block, and both are multiplied. The dot is computed in the common type of both sides and the
    result, and converted to that of the result. A scale of rank 0 counts as none.

    XLA:GPU keeps scaled-dots that its own kernels or cuDNN can compute; `filter: not-in-cudnn`
    keeps those of cuDNN. Scaled-dots in fusions stay, and so do those with dynamic dimensions
    (XLA gives them scales of static sizes). The pass ends with an error where the sizes of a scale
    do not divide those of its operand. Linear in the size of the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        filter: bool | Literal["not-in-cudnn"] | Predicate = option(
            True, "which scaled-dots to replace: all, none, or those that cuDNN does not have"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        touched: dict[Computation, None] = {}
        for dot in list(module.instructions(Opcode.SCALED_DOT)):
            if reason := self.why_not(dot):
                context.missed(dot, reason)
                continue
            for side, scale in _sides(dot):
                _check_sizes(dot, side, scale)
            if context.apply(dot, "replaced by a dot of products"):
                _replace(dot)
                touched[dot.parent] = None
        repair_schedule(touched)
        return module.version != before

    def why_not(self, dot: Instruction) -> str | None:
        """The reason why a scaled-dot stays, or None where it is replaced."""
        chosen = self.options.filter
        if dot.parent.is_fusion:
            return "it is in a fusion"
        if chosen == "not-in-cudnn":
            return "cuDNN has it" if cudnn_supports_scaled_dot(dot) else _why_not_static(dot)
        if not (chosen(dot) if callable(chosen) else chosen):
            return "the filter leaves it out"
        return _why_not_static(dot)


def _why_not_static(dot: Instruction) -> str | None:
    shapes = [dot.shape, *(operand.shape for operand in dot.operands)]
    return "it has a dynamic dimension" if any(s.is_dynamic for s in shapes) else None


def _sides(dot: Instruction) -> list[tuple[Instruction, Instruction]]:
    """Both operands, each with its scale."""
    lhs, rhs, lhs_scale, rhs_scale = dot.operands
    return [(lhs, lhs_scale), (rhs, rhs_scale)]


def _check_sizes(dot: Instruction, operand: Instruction, scale: Instruction) -> None:
    if not scale_fits(scale.shape, operand.shape):
        raise PassRefused(
            f"%{dot.name}: the sizes of %{operand.name}, {operand.shape.text}, are not multiples "
            f"of those of its scale %{scale.name}, {scale.shape.text}",
            span=dot.parent.module.span_of(dot),
        )


def _replace(dot: Instruction) -> None:
    lhs, rhs = (_scaled(operand, scale) for operand, scale in _sides(dot))
    kind = common_type(lhs.shape.type_name, rhs.shape.type_name)
    wide = common_type(kind, dot.shape.type_name)
    attributes = {name: dot.attributes[name] for name in _OF_DOT if name in dot.attributes}
    if precisions := dot.attributes.get(_PRECISION):
        attributes[_PRECISION] = f"{{{','.join(parse_names(precisions)[:2])}}}"
    sides = [_converted(lhs, kind), _converted(rhs, kind)]
    is_wide = wide == dot.shape.type_name
    shape = dot.shape if is_wide else without_packing(dot.shape).with_element_type(wide)
    product = dot.parent.add(Opcode.DOT, shape, sides, attributes=attributes)
    if not is_wide:
        product = dot.parent.add(Opcode.CONVERT, dot.shape, [product])
    replace_instruction(dot, product)


def _scaled(operand: Instruction, scale: Instruction) -> Instruction:
    """The operand times its scale."""
    if not scale.shape.dimensions:
        return operand
    kind = common_type(operand.shape.type_name, scale.shape.type_name)
    return binary(
        Opcode.MULTIPLY, _converted(operand, kind), _spread(_converted(scale, kind), operand.shape)
    )


def _spread(scale: Instruction, target: Shape) -> Instruction:
    """The scale in the sizes of an operand: a new dimension behind each that is divided."""
    sizes: list[int] = []
    places: list[int] = []
    for size, count in zip(target.dimensions, scale.shape.dimensions, strict=True):
        places.append(len(sizes))
        sizes += [count] if size == count else [count, size // count]
    wide = broadcast(scale, with_sizes(scale.shape, *sizes), tuple(places))
    return reshape(wide, with_sizes(scale.shape, *target.dimensions))


def _converted(operand: Instruction, type_name: str) -> Instruction:
    return operand if operand.shape.type_name == type_name else convert(operand, type_name)
