"""Bring scatters into a form with a matrix of indices and windows of all dimensions."""

from __future__ import annotations

from math import prod

from hloopt.ir.clone import copy_instructions, own_computations
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.expanders.indices import (
    ints,
    matrix_of_indices,
    reshaped,
    set_ints,
    transposed,
    vector_dimension,
)
from hloopt.passes.rewriting.rules import Builder, Match, Missed, Result, RulePass, op, rule


@rule(op("scatter"), moves_control=True)
def simplify(match: Match) -> Result:
    """scatter(x, i, u) -> scatter(x, matrix of i, u of rows and whole windows)."""
    root, build = match.root, match.build
    if is_simplified_scatter(root):
        return None
    count = len(root.operands) // 2
    operands, indices, updates = (
        root.operands[:count],
        root.operands[count],
        root.operands[count + 1 :],
    )
    if not operands[0].shape.rank:
        if any(update.shape.rank for update in updates):
            return Missed("it puts several updates into a scalar")
        return _updated_scalars(build, root, [*operands, *updates])
    if ints(root, "input_batching_dims"):
        return Missed("it has batching dimensions: batched-gather-scatter-normalizer removes them")
    matrix = matrix_of_indices(build, indices, vector_dimension(root))
    windows = [_rows_of_windows(build, root, update) for update in updates]
    made = build.clone(root, [*operands, matrix, *windows], root.shape)
    rank = operands[0].shape.rank
    set_ints(made, {"update_window_dims": range(1, rank + 1), "inserted_window_dims": ()})
    made.set_attribute("index_vector_dim", "1")
    return made


def is_simplified_scatter(scatter: Instruction) -> bool:
    """Whether a scatter is in the form that scatter-simplifier gives it."""
    count = len(scatter.operands) // 2
    operand, indices, update = (scatter.operands[n] for n in (0, count, count + 1))
    windows = ints(scatter, "update_window_dims")
    return (
        operand.shape.rank > 0
        and vector_dimension(scatter) == indices.shape.rank - 1
        and update.shape.rank - len(windows) <= 1
        and 0 not in windows
        and list(windows) == sorted(windows)
        and not ints(scatter, "inserted_window_dims")
        and not ints(scatter, "input_batching_dims")
    )


def _rows_of_windows(build: Builder, scatter: Instruction, update: Instruction) -> Instruction:
    """An update as [N, window of all dimensions of the operand]."""
    windows, inserted = ints(scatter, "update_window_dims"), ints(scatter, "inserted_window_dims")
    outer = [d for d in range(update.shape.rank) if d not in windows]
    update = transposed(build, update, [*outer, *windows])
    sizes = update.shape.dimensions
    window = list(sizes[len(outer) :])
    update = reshaped(build, update, (prod(sizes[: len(outer)]), *window))
    for dimension in sorted(inserted):
        window.insert(dimension, 1)
    return reshaped(build, update, (update.shape.dimensions[0], *window))


def _updated_scalars(
    build: Builder, scatter: Instruction, arguments: list[Instruction]
) -> Instruction:
    """The computation of a scatter, applied to scalars and inlined."""
    (computation,) = scatter.called
    inner = [i for i in post_order(computation) if i.opcode is not Opcode.PARAMETER]
    copies = copy_instructions(
        inner, build.computation, dict(zip(computation.parameters, arguments, strict=True))
    )
    for instruction in inner:
        own_computations(copies[instruction])
        build.made.append(copies[instruction])
    return copies[computation.root]


@register(
    "scatter-simplifier",
    preserves="bits",
    xla=XlaPass("ScatterSimplifier", "xla/service/scatter_simplifier.h"),
)
class ScatterSimplifier(RulePass):
    """Let scatters have a matrix of indices, and updates of one row each with all dimensions.

    The index vector becomes the last of two dimensions. Each update is transposed and reshaped: its
    scatter dimensions first, joined into one, then the window dimensions with those of size 1 that
    were inserted. Into scalars, the computation of the scatter is inlined. Scatters with batching
    dimensions stay, and so do those of several updates into a scalar. Linear in the number of
    instructions.
    """

    rules = (simplify,)
    max_sweeps = 1
