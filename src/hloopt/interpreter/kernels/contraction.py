"""Contractions: dot, ragged-dot, scaled-dot."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from hloopt.interpreter.arithmetic.matrices import (
    joint_dtype,
    multiply,
    product_as,
    product_dtype,
    rounded_for,
)
from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.limits import Tick
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.values import Array, dtype_of_shape
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_Axes = tuple[int, ...]


class _Dimensions(NamedTuple):
    """The dimensions of the two sides that are contracted, and those that are paired."""

    lhs_batch: _Axes
    rhs_batch: _Axes
    lhs_contracting: _Axes
    rhs_contracting: _Axes

    @classmethod
    def of(cls, instruction: Instruction) -> _Dimensions:
        attributes = instruction.attributes
        return cls(*(parse_ints(attributes.get(f"{name}_dims", "{}")) for name in cls._fields))

    def lhs_free(self, rank: int) -> list[int]:
        return _others(rank, (*self.lhs_batch, *self.lhs_contracting))

    def rhs_free(self, rank: int) -> list[int]:
        return _others(rank, (*self.rhs_batch, *self.rhs_contracting))


def _others(rank: int, axes: _Axes) -> list[int]:
    return [axis for axis in range(rank) if axis not in axes]


@kernel(Opcode.DOT, calls=True)
def dot(plans: Plans, instruction: Instruction, lhs: Array, rhs: Array) -> Array:
    """Sums of products; dimensions of the result are batch, free of lhs, free of rhs."""
    dtype = dtype_of_shape(instruction.shape)
    operands = joint_dtype(lhs, rhs)
    wide = product_dtype(operands, dtype)
    algorithm = instruction.attributes.get("algorithm", "")
    lhs, rhs = rounded_for(algorithm, lhs), rounded_for(algorithm, rhs)
    lhs, rhs = lhs.astype(wide, copy=False), rhs.astype(wide, copy=False)
    product = _contract(_Dimensions.of(instruction), lhs, rhs, plans.limits.tick())
    return product_as(dtype, product, operands)


def _contract(dimensions: _Dimensions, lhs: Array, rhs: Array, tick: Tick) -> Array:
    """The dot of two arrays of one type, by one multiplication of (stacks of) matrices."""
    lhs_free, rhs_free = dimensions.lhs_free(lhs.ndim), dimensions.rhs_free(rhs.ndim)
    batch = tuple(lhs.shape[axis] for axis in dimensions.lhs_batch)
    rows = tuple(lhs.shape[axis] for axis in lhs_free)
    columns = tuple(rhs.shape[axis] for axis in rhs_free)
    depth = prod(lhs.shape[axis] for axis in dimensions.lhs_contracting)
    left = lhs.transpose(*dimensions.lhs_batch, *lhs_free, *dimensions.lhs_contracting)
    right = rhs.transpose(*dimensions.rhs_batch, *dimensions.rhs_contracting, *rhs_free)
    product = multiply(
        left.reshape(prod(batch), prod(rows), depth),
        right.reshape(prod(batch), depth, prod(columns)),
        tick,
    )
    return product.reshape((*batch, *rows, *columns))


@kernel(Opcode.RAGGED_DOT, calls=True)
def ragged_dot(
    plans: Plans, instruction: Instruction, lhs: Array, rhs: Array, group_sizes: Array
) -> Array:
    """A dot per group of consecutive elements along the ragged dimension of lhs.

    A free ragged dimension takes, for each group, that group's part of rhs; a contracting one gives
    one result per group, in front; a batch one pairs the groups of both sides. What is beyond
    the last group gives zeros. One multiplication per group (and per element of the dimensions
    that have group sizes of their own).
    """
    dimensions = _Dimensions.of(instruction)
    (ragged,) = parse_ints(instruction.attributes["lhs_ragged_dims"])
    groups = parse_ints(instruction.attributes.get("rhs_group_dims", "{}"))
    dtype = dtype_of_shape(instruction.shape)
    operands = joint_dtype(lhs, rhs)
    wide = product_dtype(operands, dtype)
    lhs, rhs = lhs.astype(wide, copy=False), rhs.astype(wide, copy=False)
    prefix = _group_prefix(dimensions, lhs.ndim, ragged) if group_sizes.ndim > 1 else []
    pairs = dict(zip(dimensions.lhs_batch, dimensions.rhs_batch, strict=True))
    pairs |= zip(dimensions.lhs_contracting, dimensions.rhs_contracting, strict=True)
    kept = [*dimensions.lhs_batch, *dimensions.lhs_free(lhs.ndim)]
    count = group_sizes.shape[-1]
    if groups:
        right = np.moveaxis(rhs, groups[0], 0)
        pairs = {left: axis - (axis > groups[0]) for left, axis in pairs.items()}
    else:
        right = np.broadcast_to(rhs, (count, *rhs.shape))
    inner = _Dimensions(
        dimensions.lhs_batch,
        tuple(pairs[axis] for axis in dimensions.lhs_batch),
        dimensions.lhs_contracting,
        tuple(pairs[axis] for axis in dimensions.lhs_contracting),
    )
    columns = [right.shape[1 + axis] for axis in inner.rhs_free(right.ndim - 1)]
    sizes = [*(lhs.shape[axis] for axis in kept), *columns]
    is_contracting = ragged in dimensions.lhs_contracting
    result = np.zeros([count, *sizes] if is_contracting else sizes, wide)
    for place in np.ndindex(*group_sizes.shape[:-1]):
        limits = np.cumsum(group_sizes[place], dtype=np.int64).clip(0, lhs.shape[ragged])
        start = 0
        for group, limit in enumerate(limits.tolist()):
            part = {axis: slice(i, i + 1) for axis, i in zip(prefix, place, strict=True)}
            part[ragged] = slice(start, limit)
            start = limit
            rhs_part = {pairs[axis]: at for axis, at in part.items() if axis in pairs}
            result_part = {kept.index(axis): at for axis, at in part.items() if axis in kept}
            target = result[group] if is_contracting else result
            target[_index(result_part, target.ndim)] += _contract(
                inner,
                lhs[_index(part, lhs.ndim)],
                right[group][_index(rhs_part, right.ndim - 1)],
                plans.limits.tick(),
            )
    return product_as(dtype, result, operands)


def _group_prefix(dimensions: _Dimensions, rank: int, ragged: int) -> list[int]:
    """The lhs dimensions for each element of which there are group sizes of their own."""
    batch, contracting = dimensions.lhs_batch, dimensions.lhs_contracting
    if ragged in batch:
        return list(batch[: batch.index(ragged)])
    if ragged in contracting:
        return [*batch, *contracting[: contracting.index(ragged)]]
    return [*batch, *(axis for axis in dimensions.lhs_free(rank) if axis < ragged)]


def _index(parts: dict[int, slice], rank: int) -> tuple[slice, ...]:
    return tuple(parts.get(axis, slice(None)) for axis in range(rank))


@kernel(Opcode.SCALED_DOT, calls=True)
def scaled_dot(
    plans: Plans,
    instruction: Instruction,
    lhs: Array,
    rhs: Array,
    lhs_scale: Array,
    rhs_scale: Array,
) -> Array:
    """The dot of lhs and rhs, each times its scale, where one scale is for a block of elements."""
    dtype = dtype_of_shape(instruction.shape)
    operands = joint_dtype(lhs, rhs)
    wide = product_dtype(operands, dtype)
    left = lhs.astype(wide, copy=False) * _spread(lhs_scale, lhs.shape).astype(wide, copy=False)
    right = rhs.astype(wide, copy=False) * _spread(rhs_scale, rhs.shape).astype(wide, copy=False)
    product = _contract(_Dimensions.of(instruction), left, right, plans.limits.tick())
    return product_as(dtype, product, operands)


def _spread(scale: Array, sizes: tuple[int, ...]) -> Array:
    """Each element of `scale` repeated over its block. A scalar is for all elements."""
    for axis in range(scale.ndim):
        if scale.shape[axis] != sizes[axis]:
            scale = np.repeat(scale, sizes[axis] // max(scale.shape[axis], 1), axis)
    return scale
