"""Products of matrices, for dots and convolutions, and the types they are computed in."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from hloopt.interpreter.arithmetic.conversions import converted
from hloopt.interpreter.limits import Tick
from hloopt.interpreter.values import Array, computing_type

_EXACT_IN_F64 = 2**53
_NARROWING = {
    "dot_bf16_bf16_f32": np.dtype(ml_dtypes.bfloat16),
    "dot_bf16_bf16_bf16": np.dtype(ml_dtypes.bfloat16),
    "dot_f16_f16_f32": np.dtype(np.float16),
    "dot_f16_f16_f16": np.dtype(np.float16),
}
"""Algorithms of dots that round their operands. Those with several products per element
(`_x3`, `_x6`…) come close to f32 and are computed in it, as tf32 is."""


def joint_dtype(lhs: Array, rhs: Array) -> np.dtype[Any]:
    """The type of two operands; that which the two are computed in where they differ."""
    return lhs.dtype if lhs.dtype == rhs.dtype else product_dtype(lhs.dtype, rhs.dtype)


def product_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The type that products of operands, given with the result's type, are summed up in."""
    return np.result_type(*map(computing_type, dtypes))


def rounded_for(algorithm: str, operand: Array) -> Array:
    """An operand as an algorithm of a dot sees it."""
    narrow = _NARROWING.get(algorithm)
    return operand if narrow is None else operand.astype(narrow, copy=False)


def multiply(left: Array, right: Array, tick: Tick) -> Array:
    """The products of two stacks of matrices of one type, by BLAS; integers wrap around."""
    dtype = left.dtype
    if dtype.kind in "iu" and left.size and right.size:
        bound = _magnitude(left) * _magnitude(right) * left.shape[-1]
        if bound < _EXACT_IN_F64:
            product = _matmul(left.astype(np.float64), right.astype(np.float64), tick)
            return np.asarray(product).astype(np.int64).astype(dtype)
    return _matmul(_for_blas(left), _for_blas(right), tick)


def _matmul(left: Array, right: Array, tick: Tick) -> Array:
    """np.matmul of two stacks; with `tick`, which may stop it, some rows of the left at a time."""
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    if rows == 1 and columns >= _WIDE and depth <= _MOST_DEPTH and left.dtype == np.float32:
        # Threads of BLAS would wait for each other.
        return np.asarray(np.einsum("gij,gjk->gik", left, right))
    each = max(left.shape[0] * depth * columns, 1)
    step = max(_MOST_PRODUCTS // each, 1)
    if tick is None or rows <= step:
        return np.asarray(np.matmul(left, right))
    parts = []
    for start in range(0, rows, step):
        tick()
        parts.append(np.matmul(left[:, start : start + step], right))
    return np.concatenate(parts, 1)


_WIDE = 1024
_MOST_DEPTH = 1024
"""Of sums one term after the other: BLAS makes less of rounding in longer ones."""
_MOST_PRODUCTS = 1 << 32
"""So many take part of a second."""


def _magnitude(array: Array) -> int:
    return max(abs(int(array.min())), abs(int(array.max())))


def _for_blas(matrices: Array) -> Array:
    """The same matrices, rows or columns contiguous: any others NumPy multiplies by itself."""
    strides = matrices.strides[-2:]
    if matrices.itemsize in strides and 0 not in strides:
        return matrices
    return np.ascontiguousarray(matrices)


def product_as(dtype: np.dtype[Any], product: Array, operands: np.dtype[Any]) -> Array:
    """A product in the type of the result. One of floats as an integer is rounded first, to the
    type of the operands, as XLA:CPU does it."""
    if operands.kind in "fV" and product.dtype.kind == "f" and computing_type(dtype).kind in "iu":
        product = product.astype(operands)
    return converted(product, dtype)
