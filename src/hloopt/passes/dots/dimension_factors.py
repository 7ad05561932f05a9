"""Chains of transposes and reshapes as one: which factor of which dimension stands where."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeAlias

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import default_layout
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.rewriting.rules import Builder

REARRANGING = frozenset((Opcode.TRANSPOSE, Opcode.RESHAPE, Opcode.BITCAST))


class Factor(NamedTuple):
    """A part of a dimension: `before` is the product of the factors that are more major."""

    dimension: int
    before: int
    size: int


View: TypeAlias = list[list[Factor]]
"""The factors of each dimension of an array, major ones first; a dimension of size 1 has none."""


def whole(sizes: Sequence[int]) -> View:
    """The view of an array of which nothing has been rearranged."""
    return [[Factor(d, 1, size)] if size != 1 else [] for d, size in enumerate(sizes)]


def after(view: View, step: Instruction) -> View | None:
    """The view of what a transpose, reshape or bitcast makes; None where factors are torn."""
    if step.opcode is Opcode.TRANSPOSE:
        return [view[d] for d in dimensions_of(step)]
    return _regrouped(view, step.shape.dimensions) if _is_reshape(step) else None


def before(view: View, step: Instruction) -> View | None:
    """The view of what a transpose, reshape or bitcast reads, from that of what it makes."""
    if step.opcode is Opcode.TRANSPOSE:
        result: View = [[] for _ in view]
        for factors, d in zip(view, dimensions_of(step), strict=True):
            result[d] = factors
        return result
    return _regrouped(view, step.operands[0].shape.dimensions) if _is_reshape(step) else None


def _is_reshape(step: Instruction) -> bool:
    """Whether a reshape or bitcast keeps the order of elements."""
    if step.opcode is Opcode.RESHAPE:
        return True
    return step.shape.type_name == step.operands[0].shape.type_name and all(
        shape.layout == default_layout(shape.rank) for shape in (step.shape, step.operands[0].shape)
    )


def _regrouped(view: View, sizes: Sequence[int]) -> View | None:
    """The factors in dimensions of these sizes, split where a boundary falls into one."""
    left = [factor for factors in reversed(view) for factor in reversed(factors)]
    result: View = []
    for size in sizes:
        factors: list[Factor] = []
        while size > 1:
            dimension, start, extent = left.pop()
            if size % extent and extent % size:
                return None
            taken = min(size, extent)
            factors.append(Factor(dimension, start, taken))
            if taken < extent:
                left.append(Factor(dimension, start * taken, extent // taken))
            size //= taken
        result.append(factors)
    return result


def parts_of(view: View) -> dict[int, list[Factor]]:
    """The factors of each dimension that a view has, major ones first."""
    found: dict[int, list[Factor]] = {}
    for factor in sorted(factor for factors in view for factor in factors):
        found.setdefault(factor.dimension, []).append(factor)
    return found


def refined(view: View, other: View) -> View:
    """A view with its factors split as they are in another one of the same elements."""
    parts = parts_of(other)
    return [
        [
            part
            for factor in factors
            for part in parts[factor.dimension]
            if factor.before <= part.before < factor.before * factor.size
        ]
        for factors in view
    ]


# -- making instructions --------------------------------------------------------------------------


def rearranged(
    build: Builder, operand: Instruction, source: View, target: View, shape: Shape
) -> Instruction:
    """The operand, whose view is `source`, as `target`: a reshape, transpose and reshape at most.

    `shape` has the sizes of `target`, whose factors are at least as fine. Steps that do nothing
    are left out.
    """
    for step in _steps(operand.shape.dimensions, refined(source, target), target, shape.dimensions):
        if step.order:
            operand = build.transpose(operand, step.order)
        else:
            operand = build.reshape(operand, step.sizes)
    return operand


class _Step(NamedTuple):
    """A reshape to `sizes`; a transpose where there is an order."""

    sizes: tuple[int, ...]
    order: tuple[int, ...] = ()


def _steps(
    sizes: tuple[int, ...], source: View, target: View, wanted: tuple[int, ...]
) -> list[_Step]:
    """The fewest steps that lead from one view to another."""
    order = _order_of_dimensions(source, target)
    if order is not None:
        return [] if order == tuple(range(len(order))) else [_Step(wanted, order)]
    goal = [factor for factors in target for factor in factors]
    if goal == [factor for factors in source for factor in factors]:
        return [_Step(wanted)]
    choices = [
        _by_blocks(sizes, source, target, wanted, at_source, at_target)
        for at_source in (True, False)
        for at_target in (True, False)
    ]
    return min(choices, key=len)


def _order_of_dimensions(source: View, target: View) -> tuple[int, ...] | None:
    """The order in which the dimensions of the source are those of the target, if they are."""
    places: dict[tuple[Factor, ...], list[int]] = {}
    for d, factors in reversed([*enumerate(source)]):
        places.setdefault(tuple(factors), []).append(d)
    order = []
    for factors in target:
        found = places.get(tuple(factors))
        if not found:
            return None
        order.append(found.pop())
    return tuple(order) if len(order) == len(source) else None


def _by_blocks(
    sizes: tuple[int, ...],
    source: View,
    target: View,
    wanted: tuple[int, ...],
    at_source: bool,
    at_target: bool,
) -> list[_Step]:
    """Steps that move blocks of factors, which end where dimensions of a side do, if asked for."""
    goal = [factor for factors in target for factor in factors]
    place = {factor: n for n, factor in enumerate(goal)}
    first = {
        factors[0]
        for view, asked in ((source, at_source), (target, at_target))
        if asked
        for factors in view
        if factors
    }
    base = [factor for factors in source for factor in factors]
    blocks = [[base[0]]]
    for last, factor in pairwise(base):
        if factor in first or place[factor] != place[last] + 1:
            blocks.append([])
        blocks[-1].append(factor)
    extents = tuple([prod(factor.size for factor in block) for block in blocks])
    order = tuple(sorted(range(len(blocks)), key=lambda n: place[blocks[n][0]]))
    moved = tuple(extents[n] for n in order)
    steps = [_Step(moved, order)]
    if extents != sizes:
        steps.insert(0, _Step(extents))
    if moved != wanted:
        steps.append(_Step(wanted))
    return steps
