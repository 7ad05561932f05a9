"""Block-scaled tensors: made of arrays, turned into arrays, and multiplied, as custom calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloopt.interpreter.arithmetic.conversions import converted
from hloopt.interpreter.errors import cannot_run
from hloopt.interpreter.kernels.contraction import Dimensions, dot_in_type, scaled
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.values import (
    Array,
    Value,
    dtype_of_shape,
    has_shape,
    type_text,
    widened,
    zeros,
)
from hloopt.ir.block_scaling import (
    BLOCK_TILE,
    CUDNN_BLOCKS,
    ROW_TILE,
    SWIZZLE,
    block_size,
    dot_sides,
    largest_power,
    swizzle_sizes,
    why_no_blocks,
    why_no_dequantize,
    why_no_dot,
    why_no_quantize,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape


def quantize(instruction: Instruction, array: Array) -> Value:
    """Values and scales: of each block the largest number becomes one that the type can hold.

    All is computed in the type of the array, with a rounding after each step.
    """
    _check(instruction, why_no_quantize(instruction))
    values, scales = instruction.shape.elements
    block = block_size(values, scales)
    assert block is not None
    blocks = widened(array).reshape(*array.shape[:-1], scales.dimensions[-1], block)
    amax = np.abs(blocks).max(-1, initial=0)
    largest = amax.dtype.type(largest_power(values.type_name))
    scale = converted(_rounded(amax / largest, array), dtype_of_shape(scales))
    divisors = widened(converted(scale, array.dtype))[..., None]
    shares = _rounded(blocks / divisors, array).reshape(array.shape)
    return converted(shares, dtype_of_shape(values)), scale


def _rounded(result: Array, like: Array) -> Array:
    return np.asarray(result).astype(like.dtype, copy=False)


def dequantize(instruction: Instruction, values: Array, scales: Array) -> Array:
    """The values times their scales, in the type of the result."""
    _check(instruction, why_no_dequantize(instruction))
    return _dequantized(values, scales, dtype_of_shape(instruction.shape))


def _dequantized(values: Array, scales: Array, dtype: np.dtype[Any]) -> Array:
    return scaled(converted(values, dtype), converted(scales, dtype))


def block_scaled_dot(plans: Plans, instruction: Instruction, *operands: Array) -> Array:
    """The dot of both sides, dequantized in the type of the result, times the global scale.

    Scales of more than there is, in rows or blocks, are left out.
    """
    _check(instruction, why_no_dot(instruction))
    dtype = dtype_of_shape(instruction.shape)
    sides = []
    for side, values, scales in zip(
        dot_sides(instruction), operands[:2], (*operands[2:4], None), strict=False
    ):
        if scales is None:
            sides.append(values)
            continue
        if side.depth:
            _check(instruction, why_no_blocks(side))
        used = scales[tuple(map(slice, (*values.shape[:-1], side.blocks)))]
        sides.append(_dequantized(values, used, dtype))
    product = _dot_of_rows(sides[0], sides[1], dtype, plans)
    return _times_global_scale(product, operands[4:])


def cudnn_block_scaled_dot(plans: Plans, instruction: Instruction, *operands: Array) -> Value:
    """The same of sides whose scales are in the order of the tensor cores, and a workspace.

    There may be more scales than blocks, but no fewer.
    """
    _check(instruction, _why_no_tensor_cores(instruction))
    result, workspace = instruction.shape.elements
    dtype = dtype_of_shape(result)
    sides = []
    for values, scales, shape in zip(
        *(operands[:2], operands[2:4], [o.shape for o in instruction.operands]), strict=False
    ):
        used = _in_rows(scales)[..., : values.shape[-2], : values.shape[-1] // _block(shape)]
        sides.append(_dequantized(values, used, dtype))
    product = _dot_of_rows(sides[0], sides[1], dtype, plans)
    product = _times_global_scale(product, operands[4:])
    if not has_shape(product, result):
        raise cannot_run(instruction, f"the product is {type_text(product)}, not {result.text}")
    return product, zeros(workspace)


def _why_no_tensor_cores(call: Instruction) -> str | None:
    """The reason why a call is not one that block-scaling-rewriter makes."""
    values, scales = ([o.shape for o in call.operands[i : i + 2]] for i in (0, 2))
    results = [shape for shape in call.shape.elements if shape.is_array]
    if len(call.operands) not in (4, 5) or len(results) != 2:
        return "it does not have four or five operands and two arrays as results"
    for side, of_side in zip(values, scales, strict=True):
        *_, rows, blocks = (0, 0, *of_side.dimensions)
        if side.rank not in (2, 3) or of_side.rank != side.rank or not _block(side):
            return f"{side.text} with the scales {of_side.text} are not a side that cuDNN takes"
        if rows % ROW_TILE or blocks % BLOCK_TILE:
            return f"the scales {of_side.text} are not in whole tiles"
        if rows < side.dimensions[-2] or blocks * _block(side) < side.dimensions[-1]:
            return f"the scales {of_side.text} are not enough for the values {side.text}"
    return None


def _block(values: Shape) -> int:
    element = values.element_type
    return CUDNN_BLOCKS.get(element.bits, 0) if element else 0


def _in_rows(swizzled: Array) -> Array:
    """Scales in rows again; swizzling exchanges two dimensions of parts of tiles."""
    batch, row_tiles, columns, rows, block_tiles, blocks = swizzle_sizes(swizzled.shape)
    parts = swizzled.reshape(batch, row_tiles, block_tiles, rows, columns, blocks)
    return parts.transpose(SWIZZLE).reshape(swizzled.shape)


def _dot_of_rows(lhs: Array, rhs: Array, dtype: np.dtype[Any], plans: Plans) -> Array:
    """The dot over the last dimensions, matrix by matrix of arrays with three."""
    batch, last = ((0,) if lhs.ndim > 2 else ()), (lhs.ndim - 1,)
    return dot_in_type(Dimensions(batch, batch, last, last), lhs, rhs, dtype, plans.limits.tick())


def _times_global_scale(product: Array, scale: tuple[Array, ...]) -> Array:
    if not scale:
        return product
    return (widened(product) * widened(scale[0])).astype(product.dtype, copy=False)


def _check(instruction: Instruction, reason: str | None) -> None:
    if reason is not None:
        raise cannot_run(instruction, reason)
