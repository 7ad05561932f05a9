"""Functions of complex arrays that NumPy lacks, or computes with less care near the limits."""

from __future__ import annotations

import numpy as np

from hloopt.interpreter.values import Array


def make_complex(real: Array, imaginary: Array) -> Array:
    """Complex numbers of two parts, put together without arithmetic, so that inf and NaN stay."""
    result = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), _complex_of(real))
    result.real = real
    result.imag = imaginary
    return result


def _complex_of(real: Array) -> np.dtype[np.generic]:
    return np.dtype(np.complex64 if real.dtype.itemsize == 4 else np.complex128)


def divide(left: Array, right: Array) -> Array:
    """A quotient, by C's rules where both parts would be NaN: 0 for a finite number by an infinite
    one, infinite for an infinite one by a finite one."""
    quotient = np.asarray(np.divide(left, right))
    lost = np.isnan(quotient.real) & np.isnan(quotient.imag)
    if not lost.any():
        return quotient
    left, right = np.broadcast_arrays(left, right)
    unbound = lost & np.isinf(left) & np.isfinite(right)
    vanishing = lost & np.isfinite(left) & np.isinf(right)
    limit = np.where(unbound, np.inf, np.where(vanishing, 0, np.nan)).astype(left.real.dtype)
    top, bottom = _direction(left), _direction(right)
    top, bottom = np.where(unbound, top, left), np.where(vanishing, bottom, right)
    repaired = make_complex(
        limit * (top.real * bottom.real + top.imag * bottom.imag),
        limit * (top.imag * bottom.real - top.real * bottom.imag),
    )
    return np.where(unbound | vanishing, repaired, quotient)


def _direction(x: Array) -> Array:
    """Infinite parts as 1 or -1, finite ones as 0 with their sign."""
    real = np.copysign(np.isinf(x.real).astype(x.real.dtype), x.real)
    imaginary = np.copysign(np.isinf(x.imag).astype(x.real.dtype), x.imag)
    return make_complex(real, imaginary)


def power(base: Array, exponent: Array) -> Array:
    """exp(exponent log(base)); 1 for the exponent 0, and 0 for the base 0 and a positive one."""
    result = np.asarray(np.exp(np.log(base) * exponent))
    vanishes = (base == 0) & (exponent.real > 0) & (exponent.imag == 0)
    result = np.where(vanishes, np.zeros((), base.dtype), result)
    return np.where(exponent == 0, np.ones((), base.dtype), result)


def maximum(left: Array, right: Array) -> Array:
    """The one with the larger real part."""
    return np.where(left.real >= right.real, left, right)


def minimum(left: Array, right: Array) -> Array:
    """The one with the smaller real part."""
    return np.where(left.real <= right.real, left, right)


def expm1(x: Array) -> Array:
    """exp(x) - 1, exact near 0: cos(y) - 1 as -2 sin²(y/2)."""
    a, b = np.expm1(x.real), np.asarray(x.imag)
    half = np.sin(b / 2)
    imaginary = np.where(b == 0, b, (a + 1) * np.sin(b))
    return make_complex(a * np.cos(b) - 2 * half * half, imaginary)


def log1p(x: Array) -> Array:
    """log(1 + x), exact near 0: |1 + x|² - 1 is formed without the 1."""
    a, b = x.real, x.imag
    near = np.log1p(a * (2 + a) + b * b) / 2
    far = np.log(np.hypot(1 + a, b))
    is_near = np.abs(a) + np.abs(b) < 0.5
    return make_complex(np.where(is_near, near, far), np.arctan2(b, 1 + a))


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)), 0 where the exponential is infinite."""
    one = np.ones((), x.dtype)
    return divide(one, one + np.exp(-x))


def rsqrt(x: Array) -> Array:
    return divide(np.ones((), x.dtype), np.asarray(np.sqrt(x)))


def sign(x: Array) -> Array:
    """x / |x|, part by part; 0 at 0."""
    size = np.abs(x)
    size = np.where(size == 0, np.ones((), size.dtype), size)
    return make_complex(x.real / size, x.imag / size)


def atan2(y: Array, x: Array) -> Array:
    """-i log((x + iy) / sqrt(x² + y²))."""
    quotient = np.log((x + 1j * y) / np.sqrt(x * x + y * y))
    return np.asarray(-1j * quotient).astype(x.dtype, copy=False)
