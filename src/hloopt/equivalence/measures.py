"""The distances between the outputs of two runs: absolute, relative, in units in the last place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, isnan
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hloopt.interpreter.values import Array, Value, float_info, type_text

Index: TypeAlias = tuple[int, ...]

LOOSE = {
    **{"float64": 1e-9, "float32": 2e-4, "float16": 1e-2, "bfloat16": 4e-2},
    **{"complex64": 2e-4, "complex128": 1e-9},
}
"""By type of NumPy: how far a value may be off, as a part of itself and of the largest value of its
array, where rounding explains it. Several times what sums of a few hundred elements lose."""
_STEPS = 4
"""The number of machine epsilons of itself and of the largest value of its array a value may be
off, whatever explains it: exp, tanh and the like are off by some in all implementations."""


def loose_tolerance(dtype: np.dtype[Any]) -> float:
    """LOOSE; for floats of eight bits and less a step between neighbours, at the largest."""
    known = LOOSE.get(dtype.name)
    return float(float_info(dtype).eps) / 2 if known is None else known


def tight_tolerance(dtype: np.dtype[Any]) -> float:
    """The tolerance: a part of a value, and of the largest value of its array."""
    if dtype.kind == "c":
        dtype = np.dtype(f"float{dtype.itemsize * 4}")
    return min(_STEPS * float(float_info(dtype).eps), loose_tolerance(dtype))


class Pair(NamedTuple):
    """One output, or a part of it, of both runs on a device."""

    leaf: Index
    """Its tuple index; () where the result is one array."""
    name: str
    """`output{2}`, or an effect."""
    type: str
    """Of the whole array."""
    device: int
    left: Array
    right: Array
    offset: Index
    """The offset of the arrays in the whole one."""


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest of some errors, and where it is."""

    value: float
    index: Index
    device: int
    seed: int
    left: str
    right: str


@dataclass(slots=True)
class OutputErrors:
    """The errors of one output, over all devices and seeds."""

    name: str
    leaf: Index
    type: str
    elements: int = 0
    """Compared, over all devices and seeds."""
    unequal: int = 0
    """Elements that are not equal; NaN equals any NaN."""
    not_finite: int = 0
    """Elements that are NaN or infinite in both."""
    absolute: Largest | None = None
    relative: Largest | None = None
    ulps: Largest | None = None
    rounding: float | None = None
    """The distance by which rounding alone moves an element of it; None where that was not
    needed."""
    narrowest: str | None = None
    """The narrowest float type on the way to it, where the tolerance comes from that."""
    error_in_units: float | None = None
    """The largest error, in units in the last place of the narrowest type at the largest value."""
    tolerance_in_units: float | None = None
    """The tolerance, in the same."""
    devices: set[int] = field(default_factory=set)

    def add(self, pair: Pair, errors: Errors, seed: int) -> None:
        """Count another part, or seed, of the output in."""
        self.devices.add(pair.device)
        self.elements += pair.left.size
        self.unequal += errors.unequal
        self.not_finite += errors.not_finite
        if not errors.unequal:
            return
        self.absolute = _larger(self.absolute, errors.absolute, pair, seed)
        if errors.relative is not None:
            self.relative = _larger(self.relative, errors.relative, pair, seed)
        if errors.ulps is not None:
            self.ulps = _larger(self.ulps, errors.ulps, pair, seed)


def _larger(known: Largest | None, errors: Array, pair: Pair, seed: int) -> Largest:
    position = int(np.argmax(errors))
    value = float(errors.reshape(-1)[position])
    if known is not None and known.value >= value:
        return known
    index = tuple(map(int, np.unravel_index(position, errors.shape)))
    place = tuple(i + o for i, o in zip(index, pair.offset, strict=True))
    left, right = str(pair.left[index]), str(pair.right[index])
    return Largest(value, place, pair.device, seed, left, right)


class Errors(NamedTuple):
    """Element by element: how far two arrays of one type and size are apart."""

    absolute: Array
    """0 where equal or NaN in both; infinite where only one is finite."""
    sizes: Array
    """The absolute values of the left array."""
    unequal: int
    not_finite: int
    relative: Array | None
    """None for integers."""
    ulps: Array | None

    def within(self, most: Array | float) -> Array:
        """The elements that are no further apart than they may be; NaN and infinities never are."""
        close = (self.absolute <= most) & np.isfinite(self.absolute)
        return np.asarray(close | (self.absolute == 0))

    @property
    def largest(self) -> float:
        """The largest absolute error."""
        return float(self.absolute.max(initial=0.0))


def is_integral(array: Array) -> bool:
    """Whether values of an array are integers or truth values, which have to be equal."""
    return array.dtype.kind in "biu" or array.dtype.name.startswith(("int", "uint"))


def errors_of(left: Array, right: Array, *, signed_zeros: bool = False) -> Errors:
    """Compare two arrays of one type and size. O(elements).

    With `signed_zeros`, 0 and -0 are next to each other and not equal.
    """
    integral = is_integral(left)
    wide: Any = np.complex128 if left.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        x, y = left.astype(wide), right.astype(wide)
        sizes = np.abs(x)
        if integral:
            same = np.asarray(left == right)
            absolute = np.where(same, 0.0, np.maximum(np.abs(x - y), 1.0 * ~same))
            return Errors(absolute, sizes, int((~same).sum()), 0, None, None)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        both = ~np.isfinite(x) & ~np.isfinite(y)
        distance = np.abs(x - y)
        if signed_zeros:
            turned = same & (x == 0) & _other_signs(x, y)
            same, distance = same & ~turned, np.where(turned, _LEAST, distance)
        absolute = np.where(same, 0.0, np.where(np.isnan(distance), inf, distance))
        unequal = int(same.size - same.sum())
        if not unequal:
            return Errors(absolute, sizes, 0, int(both.sum()), None, None)
        relative = np.where(same, 0.0, absolute / sizes)
        relative = np.where(np.isnan(relative), inf, relative)
        return Errors(absolute, sizes, unequal, int(both.sum()), relative, _ulps(left, right, same))


_LEAST = 5e-324
"""The smallest of all distances."""


def turned_zero(left: Array, right: Array) -> Index | None:
    """The first zero of two arrays of floats that has another sign in each. O(elements)."""
    if is_integral(left) or left.dtype != right.dtype or left.shape != right.shape:
        return None
    wide: Any = np.complex128 if left.dtype.kind == "c" else np.float64
    x, y = left.astype(wide), right.astype(wide)
    turned = (x == 0) & (y == 0) & _other_signs(x, y)
    if not turned.any():
        return None
    return tuple(map(int, np.unravel_index(np.argmax(turned), turned.shape)))


def _other_signs(x: Array, y: Array) -> Array:
    if x.dtype.kind == "c":
        return _other_signs(x.real, y.real) | _other_signs(x.imag, y.imag)
    return np.asarray(np.signbit(x) != np.signbit(y))


def _ulps(left: Array, right: Array, same: Array) -> Array | None:
    """The number of representable numbers apart; infinite for NaN against a number."""
    if left.dtype.kind == "c":
        return None
    finite = np.isfinite(left) & np.isfinite(right)
    distance = np.abs(_places(left) - _places(right))
    return np.where(same, 0.0, np.where(finite, distance, inf))


def _places(array: Array) -> Array:
    """Numbers that count the representable ones, as f64: the bits of a sign and a magnitude."""
    width = array.dtype.itemsize * 8
    bits = np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}").astype(np.int64)
    magnitude = bits & ((1 << (width - 1)) - 1)
    return np.where(bits < 0, -magnitude, magnitude).astype(np.longdouble).reshape(array.shape)


def eps_of(dtype: np.dtype[Any]) -> float:
    """The machine epsilon of a float type."""
    return float(float_info(dtype).eps)


def unit_at(size: float, dtype: np.dtype[Any]) -> float:
    """A unit in the last place (ulp): how far numbers of a float type are apart at a size."""
    least = float(float_info(dtype).smallest_normal)
    exponent = np.floor(np.log2(max(size, least)))
    return float(2.0**exponent * eps_of(dtype))


def allowed(errors: Errors, tolerance: float) -> Array:
    """The error that each element may have: a part of it and of the largest."""
    finite = np.where(np.isfinite(errors.sizes), errors.sizes, 0.0)
    return np.asarray(tolerance * (finite.max(initial=0.0) + finite))


def arrays_with_paths(value: Value) -> Iterator[tuple[Index, Array]]:
    """The arrays of a value, each behind its tuple index."""
    stack: list[tuple[Index, Value]] = [((), value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, tuple):
            stack += [((*path, i), element) for i, element in enumerate(value)][::-1]
        elif value is not None:
            yield path, value


def other_type(pair: Pair) -> str:
    """The types of two arrays where they differ in them; empty where they do not."""
    left, right = pair.left, pair.right
    if left.dtype == right.dtype and left.shape == right.shape:
        return ""
    return f"{pair.name} was {type_text(left)}, it is {type_text(right)}"


def shown(value: float, digits: int = 3) -> str:
    """An error in a table or a sentence."""
    return "NaN" if isnan(value) else f"{value:.{digits}g}"
