"""Bring dots to canonical form: batch dimensions first, one contracting, one free dimension."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import Builder, Match, Result, RulePass, op, rule
from hloopt.passes.simplification.algsimp.reductions.dot_dimensions import (
    DotDimensions,
    Side,
    dot_dimensions,
    make_dot,
)


@rule(op("dot", "a", "b"), dynamic=True, moves_control=True, floats="rounding")
def decompose(match: Match) -> Result:
    """dot(a, b) -> reshape(dot(reshape(transpose(a)), reshape(transpose(b))))."""
    root = match.root
    dims = dot_dimensions(root)
    if all(map(_is_canonical, dims.sides)):
        return None
    build, a, b = match.build, match.a, match.b
    ascending = sorted(dims.left.batch)
    batch = _Sizes.of(a.shape, ascending)
    left, free_a, contracting_a = _canonical(build, a, dims.left, batch, is_left=True)
    right, free_b, contracting_b = _canonical(build, b, dims.right, batch, is_left=False)
    count = len(ascending)
    sides = DotDimensions(
        Side.of(left.shape.rank, range(count), (contracting_a,)),
        Side.of(right.shape.rank, range(count), (contracting_b,)),
    )
    shape = batch.and_dimensions([*free_a, *free_b], root.shape.type_name)
    dot = make_dot(build, root, left, right, sides, shape=shape)
    return build.reshape(dot, root.shape)


def _is_canonical(side: Side) -> bool:
    return (
        len(side.contracting) == 1
        and len(side.free) <= 1
        and side.batch == tuple(range(len(side.batch)))
    )


class _Sizes:
    """Sizes of dimensions, each with whether it is dynamic."""

    def __init__(self, pairs: Sequence[tuple[int, bool]]) -> None:
        self.pairs = list(pairs)

    @classmethod
    def of(cls, shape: Shape, dimensions: Sequence[int]) -> _Sizes:
        return cls([(shape.dimensions[d], shape.dynamic[d]) for d in dimensions])

    def product(self) -> tuple[int, bool]:
        """All in one dimension, dynamic if one is."""
        return prod(size for size, _ in self.pairs), any(flag for _, flag in self.pairs)

    def and_dimensions(self, more: Sequence[tuple[int, bool]], type_name: str) -> Shape:
        pairs = [*self.pairs, *more]
        return array_shape(
            type_name, tuple([size for size, _ in pairs]), dynamic=tuple([f for _, f in pairs])
        )


def _canonical(
    build: Builder, operand: Instruction, side: Side, batch: _Sizes, *, is_left: bool
) -> tuple[Instruction, list[tuple[int, bool]], int]:
    """An operand in canonical form, its free dimension, if any, and the contracting one."""
    parts = (side.free, side.contracting) if is_left else (side.contracting, side.free)
    order = (*side.batch, *parts[0], *parts[1])
    shape = operand.shape
    ordered = _Sizes.of(shape, order).pairs
    transpose = build.transpose(operand, order, _Sizes(ordered).and_dimensions([], shape.type_name))
    free = _Sizes.of(shape, side.free).product()
    frees = [] if free[0] == 1 else [free]
    contracted = _Sizes.of(shape, side.contracting).product()
    sizes = [*frees, contracted] if is_left else [contracted, *frees]
    reshape = build.reshape(transpose, batch.and_dimensions(sizes, shape.type_name))
    if "metadata" in operand.attributes:
        for made in (transpose, reshape):
            made.set_attribute("metadata", operand.attributes["metadata"])
    count = len(side.batch)
    return reshape, frees, count + len(frees) if is_left else count


@register(
    "dot-decomposer",
    preserves="rounding",
    xla=XlaPass("DotDecomposer", "xla/hlo/transforms/expanders/dot_decomposer.h"),
)
class DotDecomposer(RulePass):
    """Bring dots to canonical form: batch dimensions first, one contracting, at most one free one.

    Where one operand is in another form, both are transposed to [batch, free, contracting] and
    [batch, contracting, free] and reshaped; free dimensions multiply into one, which is left out
    where it has size 1, contracting ones too. The result is reshaped back. A dimension made of a
    dynamic one is dynamic. Linear in the number of instructions.
    """

    rules = (decompose,)
    max_sweeps = 1
