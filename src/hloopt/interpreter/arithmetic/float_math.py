"""Functions of f32 and f64 arrays that NumPy lacks, or has with other rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.polynomial import Chebyshev

from hloopt.interpreter.values import Array


def rounded_once(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of floats computed in f64, so that an f32 is the nearest to the result.

    NumPy's own f32 functions are off by up to four units in the last place, those that XLA folds
    constants with hardly ever.
    """

    def run(*operands: Array) -> Array:
        dtype = operands[0].dtype
        if dtype != np.float32:
            return function(*operands)
        return np.asarray(function(*[x.astype(np.float64) for x in operands])).astype(dtype)

    return run


exp = rounded_once(np.exp)


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + exp(-x))).astype(x.dtype, copy=False)


def rsqrt(x: Array) -> Array:
    return np.asarray(1 / np.sqrt(x)).astype(x.dtype, copy=False)


def sign(x: Array) -> Array:
    """-1, 1, and x itself where it is zero or NaN."""
    return np.asarray(np.where((x == 0) | np.isnan(x), x, np.copysign(np.ones((), x.dtype), x)))


def round_half_away_from_zero(x: Array) -> Array:
    whole = np.trunc(x)
    away = np.abs(x - whole) >= 0.5
    return np.asarray(np.copysign(np.abs(whole) + away.astype(x.dtype), x))


_TAIL = 2.0
_ONE = 6.0
"""From here on erf is 1 in f64."""


def erf(x: Array) -> Array:
    """The error function, to a few units in the last place of f64. O(elements).

    Below 2 as x times a function of x², above as 1 - exp(-x²) times a function of x; both
    functions are smooth, and so are short sums of Chebyshev polynomials.
    """
    size = np.minimum(np.abs(x.astype(np.float64)), _ONE)
    head, tail = _erf_parts()
    result = size * head(np.minimum(size, _TAIL) ** 2)
    in_tail = size > _TAIL
    if in_tail.any():
        far = size[in_tail]
        result = np.array(result)
        result[in_tail] = 1 - np.exp(-far * far) * tail(far)
    return np.asarray(np.copysign(result, x)).astype(x.dtype)


@cache
def _erf_parts() -> tuple[Chebyshev, Chebyshev]:
    """erf(x) / x of x² up to 2², and erfc(x) exp(x²) of x from 2 to 6."""

    def head(square: float) -> float:
        root = math.sqrt(square)
        return math.erf(root) / root

    def tail(x: float) -> float:
        return math.erfc(x) * math.exp(x * x)

    return _interpolated(head, 0, _TAIL**2, 18), _interpolated(tail, _TAIL, _ONE, 22)


def _interpolated(
    function: Callable[[float], float], low: float, high: float, degree: int
) -> Chebyshev:
    def values(points: Array) -> Array:
        return np.array(list(map(function, points.tolist())))

    return Chebyshev.interpolate(values, degree, domain=[low, high])
