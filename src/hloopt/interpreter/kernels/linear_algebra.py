"""Fourier transforms, Cholesky decomposition and triangular solves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from hloopt.interpreter.arithmetic.lanes import by_parts
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.limits import Tick
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.values import Array, dtype_of_shape
from hloopt.ir.attributes.values import parse_bool, parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_OfLanes: TypeAlias = Callable[[Array, int], Array]
_TRANSFORMS: dict[str, tuple[_OfLanes, _OfLanes]] = {
    "FFT": (np.fft.fft, np.fft.fft),
    "IFFT": (np.fft.ifft, np.fft.ifft),
    "RFFT": (np.fft.rfft, np.fft.fft),
    "IRFFT": (np.fft.irfft, np.fft.ifft),
}
"""By kind: the transform along the last dimension, and along the others. That to reals comes after
the others, any other one before them."""
_BLOCK = 128
"""The number of rows of a triangular matrix that are inverted together."""


@kernel(Opcode.FFT, calls=True)
def fft(plans: Plans, instruction: Instruction, operand: Array) -> Array:
    """A transform over the last dimensions, as many as `fft_length` has; inverses are scaled."""
    kind = instruction.attributes["fft_type"].strip()
    if kind not in _TRANSFORMS:
        raise RunError(f"there is no transform {kind}", code="HLO501")
    lengths = parse_ints(instruction.attributes["fft_length"])
    dtype = dtype_of_shape(instruction.shape)
    if not operand.size or 0 in lengths:
        return np.zeros(instruction.shape.dimensions, dtype)
    last, other = _TRANSFORMS[kind]
    along = [(last, -1)] + [(other, -d) for d in range(2, len(lengths) + 1)]
    result = operand
    for transform, axis in reversed(along) if kind == "IRFFT" else along:
        of_length = partial(_transformed, transform, lengths[axis])
        lanes = by_parts(of_length, np.moveaxis(result, axis, -1), plans.limits.tick())
        result = np.moveaxis(lanes, -1, axis)
    return result.astype(dtype, copy=False)


def _transformed(transform: _OfLanes, length: int, lanes: Array) -> Array:
    return transform(lanes, length)


@kernel(Opcode.CHOLESKY, calls=True)
def cholesky(plans: Plans, instruction: Instruction, operand: Array) -> Array:
    """The triangular factor of Hermitian positive definite matrices, zeros beside it.

    Reads the triangle that `lower` names. NaN throughout for a matrix that is not positive
    definite. Column by column, for all matrices at once.
    """
    lower = parse_bool(instruction.attributes.get("lower", "false"))
    matrix = operand if lower else operand.swapaxes(-1, -2)
    factor = np.zeros_like(matrix)
    failed = np.zeros(matrix.shape[:-2], bool)
    tick = plans.limits.tick()
    for j in range(matrix.shape[-1]):
        if tick is not None:
            tick()
        row = factor[..., j, :j].conj()[..., None]
        column = matrix[..., j:, j] - np.matmul(factor[..., j:, :j], row)[..., 0]
        pivot = column[..., 0].real
        failed |= ~(pivot > 0)
        factor[..., j:, j] = column / np.sqrt(pivot)[..., None]
    factor[failed] = np.nan
    return factor if lower else factor.swapaxes(-1, -2)


@kernel(Opcode.TRIANGULAR_SOLVE, calls=True)
def triangular_solve(plans: Plans, instruction: Instruction, a: Array, b: Array) -> Array:
    """The x of op(a) x = b, or of x op(a) = b: op is nothing, transpose or adjoint.

    By blocks of rows whose triangles are inverted, as XLA does it: that decides what becomes NaN
    where `a` is singular.
    """
    attributes = instruction.attributes
    lower = parse_bool(attributes.get("lower", "false"))
    left = parse_bool(attributes.get("left_side", "false"))
    unit = parse_bool(attributes.get("unit_diagonal", "false"))
    kind = attributes.get("transpose_a", "NO_TRANSPOSE").strip()
    transposed = kind != "NO_TRANSPOSE"
    if kind == "ADJOINT":
        a = a.conj()
    if transposed == left:  # xᵀ of x op(a) = b solves op(a)ᵀ xᵀ = bᵀ
        a, is_lower, turned = a.swapaxes(-1, -2), not lower, True
    else:
        is_lower, turned = lower, False
    right = b if left else b.swapaxes(-1, -2)
    x = _solve(a, right, is_lower, unit, turned, plans.limits.tick())
    return x if left else x.swapaxes(-1, -2)


def _solve(a: Array, b: Array, lower: bool, unit: bool, turned: bool, tick: Tick) -> Array:
    """The x of a x = b; `turned` where `a` is a transpose, and its blocks are inverted as such."""
    size = a.shape[-1]
    x = np.zeros_like(b)
    starts = range(0, size, _BLOCK)
    for start in starts if lower else reversed(starts):
        if tick is not None:
            tick()
        end = min(start + _BLOCK, size)
        known = slice(0, start) if lower else slice(end, size)
        rest = b[..., start:end, :] - np.matmul(a[..., start:end, known], x[..., known, :])
        block = a[..., start:end, start:end]
        if turned:
            inverse = _invert(block.swapaxes(-1, -2), not lower, unit).swapaxes(-1, -2)
        else:
            inverse = _invert(block, lower, unit)
        x[..., start:end, :] = np.matmul(inverse, rest)
    return x


def _invert(a: Array, lower: bool, unit: bool) -> Array:
    """The inverse of triangular matrices, row by row."""
    size = a.shape[-1]
    inverse = np.zeros_like(a)
    for i in range(size) if lower else range(size - 1, -1, -1):
        known = slice(0, i) if lower else slice(i + 1, size)
        row = -np.matmul(a[..., i : i + 1, known], inverse[..., known, :])
        row[..., 0, i] += 1
        inverse[..., i : i + 1, :] = row if unit else row / a[..., i : i + 1, i : i + 1]
    return inverse
