"""Values at which programs differ that are the same on ordinary numbers: NaN, infinities, zeros of
both signs and subnormal numbers, the extremes of integers, indices out of range."""

from __future__ import annotations

from math import isqrt
from typing import Literal, TypeAlias, get_args

import numpy as np

from hloopt.interpreter.roles import Role
from hloopt.interpreter.values import Array, dtype_of, dtype_of_shape, float_info
from hloopt.ir.shapes.element_type import ElementType
from hloopt.ir.shapes.shape import Shape

Special: TypeAlias = Literal[
    "NaN", "infinities", "zeros", "integer extremes", "negative indices", "indices too large"
]
SPECIALS: tuple[Special, ...] = get_args(Special)


def takes(special: Special, shape: Shape, role: Role) -> bool:
    """Whether an array of a parameter can hold special values of a kind.

    Integers that steer a program stay as they are, except that indices, and what selects a branch,
    may be out of range: a little, where a trip count may depend on them.
    """
    element = shape.element_type
    if element is None or not shape.element_count():
        return False
    if special in _OUT_OF_RANGE:
        is_signed = element.kind == "signed"
        may_be = special == "indices too large" or is_signed
        return element.is_integral and may_be and bool(role.bound or role.branches > 2)
    if element.is_integral:
        return special in ("integer extremes", "zeros") and not role.steers
    is_float = element.kind in ("float", "complex") and element.name != "f8e8m0fnu"
    return is_float and special in ("NaN", "infinities", "zeros")


def with_special(array: Array, shape: Shape, special: Special, key: list[int], role: Role) -> Array:
    """An array some of whose elements are special; see `takes`.

    Few are NaN or infinite, so that not all that is made of them is. Every other scalar, going by
    its number among the arrays, stays an ordinary one. A function of `key`.
    """
    if not takes(special, shape, role):
        return array
    number = key[1]
    if not array.ndim and number % 2 and special not in _OUT_OF_RANGE:
        return array
    element = shape.element_type
    assert element is not None
    values = _values(special, shape, element, role)
    flat = np.array(array, order="C").reshape(-1)
    count = flat.size // 2 if special in _HARMLESS else isqrt(flat.size) // 4
    count = max(min(flat.size, len(values)), count)
    places = np.random.default_rng([*key, _OWN_STREAM]).permutation(flat.size)[:count]
    chosen = np.resize(np.roll(values, -number), count)
    if element.kind == "complex":
        is_real = np.arange(count) % 2 == 0
        flat.real[places[is_real]] = chosen[is_real]
        flat.imag[places[~is_real]] = chosen[~is_real]
    else:
        flat[places] = chosen
    return flat.reshape(array.shape)


_OWN_STREAM = 77
_OUT_OF_RANGE: tuple[Special, ...] = ("negative indices", "indices too large")
_HARMLESS: tuple[Special, ...] = ("zeros", "integer extremes")
"""Special values that do not spoil every sum they enter."""


def _values(special: Special, shape: Shape, element: ElementType, role: Role) -> Array:
    dtype = dtype_of_shape(shape)
    if special in _OUT_OF_RANGE:
        return _integers(_out_of_range(special, shape, element, role), element)
    if element.is_integral:
        if special == "zeros":
            return np.zeros(1, dtype)
        least, most = _extremes(element)
        return _integers([n for n in (least, most, -1, 0, 1) if least <= n <= most], element)
    part = np.dtype(f"float{dtype.itemsize * 4}") if element.kind == "complex" else dtype
    info = float_info(part)
    found = {
        "NaN": [np.nan],
        "infinities": [np.inf, -np.inf],
        "zeros": [-0.0, 0.0, float(info.smallest_subnormal), -float(info.smallest_subnormal)],
    }[special]
    values = np.array(found).astype(part)
    if special == "infinities" and not np.isinf(values.astype(np.float64)).all():
        values = np.array([float(info.max), float(info.min)]).astype(part)
    return values


def _integers(values: list[int], element: ElementType) -> Array:
    widest = np.uint64 if element.kind == "unsigned" else np.int64
    return np.array(values, widest).astype(dtype_of(element))


def _extremes(element: ElementType) -> tuple[int, int]:
    if element.kind == "unsigned":
        return 0, (1 << element.bits) - 1
    return -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1


def _out_of_range(special: Special, shape: Shape, element: ElementType, role: Role) -> list[int]:
    """Beyond one end; arrays, which are no trip counts, also have the extreme of their type."""
    least, most = _extremes(element)
    bound = role.bound or role.branches
    if special == "negative indices":
        found = [-1, -bound, -bound - 1, *[least] * bool(shape.rank)]
    else:
        found = [bound, bound + 1, 2 * bound, *[most] * bool(shape.rank)]
    return [value for value in found if least <= value <= most] or [most]
