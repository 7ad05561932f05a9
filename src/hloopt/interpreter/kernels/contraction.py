"""Contractions: dot, ragged-dot, scaled-dot."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from hloopt.interpreter.arithmetic.conversions import converted
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
from hloopt.interpreter.values import Array, dtype_of, dtype_of_shape, widened
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.block_scaling import common_type
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.element_type import ELEMENT_TYPES

_Axes = tuple[int, ...]


class Dimensions(NamedTuple):
    """The dimensions of the two sides that are contracted, and those that are paired."""

    lhs_batch: _Axes
    rhs_batch: _Axes
    lhs_contracting: _Axes
    rhs_contracting: _Axes

    @classmethod
    def of(cls, instruction: Instruction) -> Dimensions:
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
    algorithm = instruction.attributes.get("algorithm", "")
    return dot_in_type(
        Dimensions.of(instruction),
        rounded_for(algorithm, lhs),
        rounded_for(algorithm, rhs),
        dtype_of_shape(instruction.shape),
        plans.limits.tick(),
        joint_dtype(lhs, rhs),
    )


def dot_in_type(
    dimensions: Dimensions,
    lhs: Array,
    rhs: Array,
    dtype: np.dtype[Any],
    tick: Tick,
    operands: np.dtype[Any] | None = None,
) -> Array:
    """The dot of two arrays with a result of type `dtype`.

    `operands` is the type that the operands had before they were rounded.
    """
    operands = operands or joint_dtype(lhs, rhs)
    wide = product_dtype(operands, dtype)
    product = _contract(
        dimensions, lhs.astype(wide, copy=False), rhs.astype(wide, copy=False), tick
    )
    return product_as(dtype, product, operands)


def _contract(dimensions: Dimensions, lhs: Array, rhs: Array, tick: Tick) -> Array:
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

    Sums of floats become integers as they are: what XLA:CPU's result_caster does for a dot, which
    is rounded to the operands' type first, it does not for this.
    """
    dimensions = Dimensions.of(instruction)
    (ragged,) = parse_ints(instruction.attributes["lhs_ragged_dims"])
    groups = parse_ints(instruction.attributes.get("rhs_group_dims", "{}"))
    dtype = dtype_of_shape(instruction.shape)
    wide = product_dtype(joint_dtype(lhs, rhs), dtype)
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
    inner = Dimensions(
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
    return converted(result, dtype)


def _group_prefix(dimensions: Dimensions, rank: int, ragged: int) -> list[int]:
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
    """The dot of lhs and rhs, each times its scale, where one scale is for a block of elements.

    A scale of rank 0 stands for none. Products with scales are rounded to the type in which XLA:GPU
    multiplies them, and the dot to that which it sums up in, before it becomes the result's.
    """
    names = [operand.shape.type_name for operand in instruction.operands]
    left, of_left = _side(lhs, lhs_scale, names[0], names[2])
    right, of_right = _side(rhs, rhs_scale, names[1], names[3])
    joint = common_type(of_left, of_right)
    operands = _dtype(joint)
    algorithm = instruction.attributes.get("algorithm", "")
    product = dot_in_type(
        Dimensions.of(instruction),
        rounded_for(algorithm, converted(left, operands)),
        rounded_for(algorithm, converted(right, operands)),
        _dtype(common_type(joint, instruction.shape.type_name)),
        plans.limits.tick(),
        operands,
    )
    return converted(product, dtype_of_shape(instruction.shape))


def _side(values: Array, scale: Array, of_values: str, of_scale: str) -> tuple[Array, str]:
    """Values times scales, and their type."""
    if not scale.ndim:
        return values, of_values
    name = common_type(of_values, of_scale)
    dtype = _dtype(name)
    return scaled(converted(values, dtype), converted(scale, dtype)), name


def _dtype(name: str) -> np.dtype[Any]:
    return dtype_of(ELEMENT_TYPES[name])


def scaled(values: Array, scale: Array) -> Array:
    """Values times scales of their type, each for a block of as many in all dimensions as fit."""
    for axis, size in enumerate(values.shape):
        if scale.shape[axis] != size:
            scale = np.repeat(scale, size // max(scale.shape[axis], 1), axis)
    return np.asarray(widened(values) * widened(scale)).astype(values.dtype, copy=False)
