"""Fold transposes into the dimension numbers of the dots and convolutions that read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.ir.attributes.typed import dimensions_of, labels_of
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.rewriting.rules import EDITED, Match, Missed, Result, RulePass, op, rule
from hloopt.passes.simplification.algsimp.reductions.dot_dimensions import Side, dot_dimensions
from hloopt.passes.simplification.algsimp.shapes import is_identity


@rule(op("dot", "a", "b"), floats="rounding", dynamic=True, moves_control=True)
def fold_into_dot(match: Match) -> Result:
    """dot(transpose(a), b) -> dot(a, b) of other dimensions."""
    dot, dims = match.root, dot_dimensions(match.root)
    found = [
        number
        for number, operand in enumerate((match.a, match.b))
        if operand.opcode is Opcode.TRANSPOSE and not is_identity(dimensions_of(operand))
    ]
    if not found:
        return None
    if min(match.a.shape.rank, match.b.shape.rank) < 2:
        return Missed("one of its operands is a vector")
    reasons = {n: _why_not(dot, n, dims.sides[n], match.options) for n in found}
    folded = [number for number, reason in reasons.items() if reason is None]
    if not folded:
        return Missed(next(filter(None, reasons.values())))
    for number in folded:
        order, name = dimensions_of(dot.operands[number]), ("lhs", "rhs")[number]
        side = dims.sides[number]
        for role, dimensions in (("batch", side.batch), ("contracting", side.contracting)):
            if dimensions:
                moved = format_ints([order[d] for d in dimensions])
                dot.set_attribute(f"{name}_{role}_dims", moved)
        _skip_transpose(match, number)
    return EDITED


def _why_not(
    dot: Instruction, number: int, side: Side, options: TransposeFolding.Options
) -> str | None:
    """The reason why the transpose of an operand stays, or None where it can be folded."""
    may_fold, transpose = options.dot_can_fold_transpose_operand, dot.operands[number]
    order = dimensions_of(transpose)
    free = [order[d] for d in side.free]
    if free != sorted(free):
        return f"the result would have the free dimensions of %{transpose.name} in another order"
    if may_fold is not None:
        allowed = may_fold if isinstance(may_fold, bool) else may_fold(dot, number)
        return None if allowed else f"the option rules out %{transpose.name}"
    if len(side.contracting) != 1 or len(side.free) != 1:
        return f"%{transpose.name} has not one contracting and one free dimension in it"
    if any(order[d] != d for d in side.batch):
        return f"%{transpose.name} moves a batch dimension"
    return None


@rule(op("convolution", "image", "kernel"), floats="rounding", dynamic=True, moves_control=True)
def fold_into_convolution(match: Match) -> Result:
    """convolution(transpose(image), kernel) -> convolution(image, kernel) of other labels."""
    convolution, may_fold = match.root, match.options.transposable_conv_operands
    found = [n for n in (0, 1) if convolution.operands[n].opcode is Opcode.TRANSPOSE]
    if not found:
        return None
    folded = [n for n in found if may_fold is True or (may_fold and may_fold(convolution, n))]
    if not folded:
        return Missed("the option rules out its transposed operands")
    labels = labels_of(convolution)
    parts = [labels.input, labels.kernel]
    for number in folded:
        moved = zip(dimensions_of(convolution.operands[number]), parts[number], strict=True)
        parts[number] = "".join(letter for _, letter in sorted(moved))
        _skip_transpose(match, number)
    convolution.set_attribute("dim_labels", f"{parts[0]}_{parts[1]}->{labels.output}")
    return EDITED


def _skip_transpose(match: Match, number: int) -> None:
    transpose = match.root.operands[number]
    match.root.replace_operand(number, transpose.operands[0])
    match.touched.append(transpose)


@register(
    "transpose-folding",
    preserves="rounding",
    xla=XlaPass("TransposeFolding", "xla/service/transpose_folding.h"),
)
class TransposeFolding(RulePass):
    """Let dots and convolutions read what was there before a transpose.

    Batch and contracting dimensions of a dot, and the labels of a convolution, become those of the
    transposed array. A dot's operand must have one contracting and one free dimension, and its
    batch dimensions must stay where they are, unless the option says otherwise; neither operand is
    a vector. Transposes that nothing else reads go. Linear in the number of instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        dot_can_fold_transpose_operand: Callable[[Instruction, int], bool] | bool | None = option(
            None, "fold into any operand of a dot; by default into matrices of batches in place"
        )
        transposable_conv_operands: Callable[[Instruction, int], bool] | bool = option(
            True, "fold into operands of convolutions"
        )

    options: Options
    rules = (fold_into_dot, fold_into_convolution)
    max_sweeps = 1
