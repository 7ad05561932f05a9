"""Contractions: dot, scaled-dot, ragged-dot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.shape_inference.element_types import higher_precision
from hloopt.ir.shape_inference.operation import Operation, expect_array, show
from hloopt.ir.shapes.shape import Shape, array_shape, sizes_agree

_Dimensions = tuple[int, ...]


class _Dot(NamedTuple):
    lhs: Shape
    rhs: Shape
    lhs_batch: _Dimensions
    rhs_batch: _Dimensions
    lhs_contracting: _Dimensions
    rhs_contracting: _Dimensions

    def lhs_free(self) -> list[int]:
        return _rest(self.lhs, (*self.lhs_batch, *self.lhs_contracting))

    def rhs_free(self) -> list[int]:
        return _rest(self.rhs, (*self.rhs_batch, *self.rhs_contracting))


def infer_dot(operation: Operation) -> Shape:
    """Batch dimensions, then what is left of both sides, in the default layout."""
    lhs, rhs = operation.take_operands(2)
    return _result(_read(operation, lhs, rhs))


def infer_scaled_dot(operation: Operation) -> Shape:
    """As `infer_dot`.

    Where the shape is left out, XLA takes the third operand for the right-hand side.
    """
    operands = operation.take_operands(4)
    return _result(_read(operation, operands[0], operands[2 if operation.stated is None else 1]))


def _read(operation: Operation, lhs: Shape, rhs: Shape) -> _Dot:
    expect_array(lhs, f"lhs of {operation.opcode}")
    expect_array(rhs, f"rhs of {operation.opcode}")
    dot = _Dot(
        lhs,
        rhs,
        operation.optional_ints("lhs_batch_dims"),
        operation.optional_ints("rhs_batch_dims"),
        operation.optional_ints("lhs_contracting_dims"),
        operation.optional_ints("rhs_contracting_dims"),
    )
    for shape, used in (
        (lhs, (*dot.lhs_contracting, *dot.lhs_batch)),
        (rhs, (*dot.rhs_contracting, *dot.rhs_batch)),
    ):
        if not all(0 <= d < shape.rank for d in used):
            raise HloVerifyError(
                f"A dimension number is out of range in Dot: {used} of {show(shape)}."
            )
        if len(set(used)) != len(used):
            raise HloVerifyError(
                f"A dimension number is not unique in Dot: {used} of {show(shape)}."
            )
    _check_pairs(dot, dot.lhs_contracting, dot.rhs_contracting, "contracting")
    _check_pairs(dot, dot.lhs_batch, dot.rhs_batch, "batch")
    return dot


def _check_pairs(dot: _Dot, lhs: _Dimensions, rhs: _Dimensions, what: str) -> None:
    if len(lhs) != len(rhs):
        raise HloVerifyError(
            f"Cannot infer shape for dot operation: {show(dot.lhs)} <dot> {show(dot.rhs)}. "
            f"Must specify the same number of {what} dimensions for lhs and rhs."
        )
    for x, y in zip(lhs, rhs, strict=True):
        a, b = dot.lhs.dimensions[x], dot.rhs.dimensions[y]
        if not (a == b or min(a, b) < 0):
            raise HloVerifyError(
                f"Cannot infer shape for dot operation: {show(dot.lhs)} <dot> {show(dot.rhs)}. "
                f"{what.capitalize()} dimension sizes are not compatible."
            )


def _result(
    dot: _Dot, rhs_left_out: _Dimensions = (), leading: Sequence[tuple[int, bool]] = ()
) -> Shape:
    places = [
        *leading,
        *_sizes(dot.lhs, (*dot.lhs_batch, *dot.lhs_free())),
        *_sizes(dot.rhs, [d for d in dot.rhs_free() if d not in rhs_left_out]),
    ]
    return array_shape(
        higher_precision(dot.lhs.type_name, dot.rhs.type_name),
        tuple(size for size, _ in places),
        tuple(dynamic for _, dynamic in places),
    )


def _sizes(shape: Shape, dimensions: _Dimensions | list[int]) -> list[tuple[int, bool]]:
    return [(shape.dimensions[d], shape.dynamic[d]) for d in dimensions]


def _rest(shape: Shape, used: _Dimensions) -> list[int]:
    return [d for d in range(shape.rank) if d not in used]


def infer_ragged_dot(operation: Operation) -> Shape:
    """As `infer_dot`, with groups along the ragged dimension of the left-hand side.

    A ragged batch or free dimension keeps its place; a ragged contracting dimension puts the
    number of groups in front.
    """
    lhs, rhs, group_sizes = operation.take_operands(3)
    expect_array(group_sizes, "group sizes of ragged-dot")
    dot = _read(operation, lhs, rhs)
    ragged_dimensions = operation.ints("lhs_ragged_dims")
    groups = operation.optional_ints("rhs_group_dims")
    title = f"Cannot infer shape for ragged dot operation: {show(lhs)} <ragged_dot> {show(rhs)}. "
    if len(ragged_dimensions) != 1:
        raise HloVerifyError(f"{title}There must be exactly one ragged dimension in the lhs.")
    ragged = ragged_dimensions[0]
    if not (0 <= ragged < lhs.rank):
        raise HloVerifyError(
            f"{title}lhs ragged dimension {ragged} is out of range [0, {lhs.rank})"
        )
    prefix = _group_prefix(dot, ragged)
    count = _group_count(lhs, group_sizes, prefix, title)
    leading = (count, group_sizes.dynamic[-1])
    if ragged in dot.lhs_batch or ragged in dot.lhs_contracting:
        if groups:
            raise HloVerifyError(
                f"{title}There must be zero group dimensions in the rhs when the lhs ragged "
                "dimension is batch or contracting."
            )
        return _result(dot, (), [leading] if ragged in dot.lhs_contracting else [])
    _check_group(dot, groups, count, title)
    return _result(dot, groups)


def _group_prefix(dot: _Dot, ragged: int) -> list[int]:
    """The lhs dimensions for each element of which there are group sizes of their own."""
    if ragged in dot.lhs_batch:
        return list(dot.lhs_batch[: dot.lhs_batch.index(ragged)])
    if ragged in dot.lhs_contracting:
        before = dot.lhs_contracting[: dot.lhs_contracting.index(ragged)]
        return [*dot.lhs_batch, *before]
    return [*dot.lhs_batch, *(d for d in dot.lhs_free() if d < ragged)]


def _group_count(lhs: Shape, group_sizes: Shape, prefix: list[int], title: str) -> int:
    rank = len(prefix) + 1
    if group_sizes.rank not in (1, rank):
        raise HloVerifyError(
            f"{title}expected group_sizes to have rank {rank}, got {group_sizes.rank}"
        )
    count = group_sizes.dimensions[-1]
    expected = [*(lhs.dimensions[d] for d in prefix), count]
    actual = list(group_sizes.dimensions)
    if not (group_sizes.rank == 1 or actual == expected):
        raise HloVerifyError(
            f"{title}group_sizes is expected to have shape {expected}, got {actual}"
        )
    return count


def _check_group(dot: _Dot, groups: _Dimensions, count: int, title: str) -> None:
    if len(groups) != 1:
        raise HloVerifyError(
            f"{title}There must be exactly one group dimension in the rhs when the lhs ragged "
            "dimension is non-contracting."
        )
    group = groups[0]
    if not (0 <= group < dot.rhs.rank):
        raise HloVerifyError(
            f"{title}rhs group dimension {group} is out of range [0, {dot.rhs.rank})"
        )
    if group not in dot.rhs_free():
        raise HloVerifyError(
            f"{title}rhs group dimension cannot be a batch or contracting dimension"
        )
    size = dot.rhs.dimensions[group]
    if not sizes_agree((size,), (count,)):
        raise HloVerifyError(
            f"{title}rhs group dimension is expected to have size={count}, got {size}"
        )
