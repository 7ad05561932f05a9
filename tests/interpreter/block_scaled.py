"""Block-scaled tensors as the standards define them, bit by bit and in NumPy.

MX formats (OCP Microscaling Formats 1.0): 32 values share a scale that is a power of two. NVFP4: 16
values of E2M1 share a scale of E4M3, and a product has one more.
"""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np

from hloopt.interpreter.values import Array


class Layout(NamedTuple):
    """The bits of a number, behind its sign: exponent, then mantissa."""

    exponent_bits: int
    mantissa_bits: int
    bias: int


E4M3, E5M2, E2M1 = Layout(4, 3, 7), Layout(5, 2, 15), Layout(2, 1, 1)
LAYOUTS = {"f8e4m3fn": E4M3, "f8e5m2": E5M2, "f4e2m1fn": E2M1}
DTYPES = {
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f4e2m1fn": ml_dtypes.float4_e2m1fn,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
}
FORMATS = {
    "mxfp8 e4m3": ("f8e4m3fn", "f8e8m0fnu", 32),
    "mxfp8 e5m2": ("f8e5m2", "f8e8m0fnu", 32),
    "mxfp4": ("f4e2m1fn", "f8e8m0fnu", 32),
    "nvfp4": ("f4e2m1fn", "f8e4m3fn", 16),
}
"""The types of values and scales, and the block size."""


def numbers_of(codes: Array, type_name: str) -> Array:
    """The numbers that bits stand for, as f64."""
    codes = codes.astype(np.int64)
    if type_name == "f8e8m0fnu":
        return np.asarray(np.ldexp(1.0, codes - 127))
    exponent_bits, mantissa_bits, bias = LAYOUTS[type_name]
    mantissa = codes & ((1 << mantissa_bits) - 1)
    exponent = codes >> mantissa_bits & ((1 << exponent_bits) - 1)
    is_negative = codes >> (mantissa_bits + exponent_bits) & 1
    whole = mantissa + np.where(exponent > 0, 1 << mantissa_bits, 0)
    size = np.ldexp(whole.astype(np.float64), np.maximum(exponent, 1) - bias - mantissa_bits)
    return np.asarray(np.where(is_negative, -size, size))


class Tensor(NamedTuple):
    """Values and scales, as a program takes them and as numbers."""

    values: Array
    scales: Array
    whole: Array
    """The numbers that it stands for."""


def random_codes(random: np.random.Generator, type_name: str, sizes: tuple[int, ...]) -> Array:
    """Bits of finite numbers: all of them, but scales that are powers of two near 1 only."""
    if type_name == "f8e8m0fnu":
        return random.integers(127 - 6, 127 + 7, sizes)
    exponent_bits, mantissa_bits, _ = LAYOUTS[type_name]
    bits = exponent_bits + mantissa_bits
    finite = {"f8e4m3fn": (1 << bits) - 1, "f8e5m2": 31 << mantissa_bits}.get(type_name, 1 << bits)
    return random.integers(0, finite, sizes) | random.integers(0, 2, sizes) << bits


def random_tensor(
    random: np.random.Generator,
    values: str,
    scales: str,
    sizes: tuple[int, ...],
    block: int,
    spare: tuple[int, int] = (0, 0),
) -> Tensor:
    """A tensor of some types and sizes, with spare scales: of so many rows and blocks."""
    codes = random_codes(random, values, sizes)
    *batch, rows, depth = sizes
    blocks = -(-depth // block)
    scale_codes = random_codes(random, scales, (*batch, rows + spare[0], blocks + spare[1]))
    factors = np.repeat(numbers_of(scale_codes, scales)[..., :rows, :blocks], block, -1)
    whole = numbers_of(codes, values) * factors[..., :depth]
    return Tensor(as_type(codes, values), as_type(scale_codes, scales), whole)


def as_type(codes: Array, type_name: str) -> Array:
    return codes.astype(np.uint8).view(DTYPES[type_name])


def product(lhs: Array, rhs: Array) -> Array:
    """The product of two stacks of matrices, rows by rows."""
    return np.asarray(np.einsum("...ik,...jk->...ij", lhs, rhs))


def error_of(found: Array, lhs: Array, rhs: Array) -> float:
    """The largest error of a product, as a part of the sum of the sizes of its terms."""
    terms = product(np.abs(lhs), np.abs(rhs))
    return float(np.max(np.abs(found.astype(np.float64) - product(lhs, rhs)) / terms, initial=0))
