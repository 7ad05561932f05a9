"""Arrays in other types: by value, and by their bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloopt.interpreter.values import Array, computing_type, dtype_of, widened
from hloopt.ir.shapes.element_type import ELEMENT_TYPES, ElementType


def converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """An array in another type, by value, as `convert` does it."""
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = array.real
    array = widened(array)  # not every two small types convert directly
    if dtype.kind == "b":
        return np.asarray(array != 0)
    if array.dtype.kind == "f" and computing_type(dtype).kind in "iu":
        return saturated(np.trunc(array), dtype)
    if dtype.name in ("float16", "bfloat16"):
        array = array.astype(np.float32, copy=False)  # XLA:CPU rounds twice here
    elif array.dtype == np.float64 and dtype.itemsize == 1:
        array = _without_last_bits(array)  # ml_dtypes goes by way of f32
    return array.astype(dtype)


def _without_last_bits(array: Array) -> Array:
    """f64 that f32 can hold and that round to fewer bits as the given ones: the 29 last bits are
    cut off, and the one before them is set where any of them was."""
    bits = array.view(np.uint64)
    last = bits & np.uint64((1 << 29) - 1)
    any_last = (last != 0).astype(np.uint64) << np.uint64(29)
    return np.asarray((bits - last) | any_last).view(np.float64)


def saturated(whole: Array, dtype: np.dtype[Any]) -> Array:
    """Floats without fraction as integers."""
    bits = int(dtype.name.lstrip("uint"))
    low, high = (0, (1 << bits) - 1) if "u" in dtype.name else (-1 << bits - 1, (1 << bits - 1) - 1)
    # high + 1 and low are powers of two or 0: exact in any float type.
    inside = (whole >= low) & (whole < high + 1)
    wide = computing_type(dtype).type
    result = np.where(inside, whole, 0).astype(wide)
    result = np.where(whole >= high + 1, wide(high), np.where(whole < low, wide(low), result))
    return result.astype(dtype, copy=False)


def same_bits(array: Array, old: ElementType, new: ElementType) -> Array:
    """`array` of type `old` with its bits read as values of type `new`."""
    dtype = dtype_of(new)
    if dtype.kind == "b":  # a byte each
        return np.asarray(same_bits(array, old, ELEMENT_TYPES["u8"]) != 0)
    old_bits, new_bits = max(old.bits, 8 * (old.kind == "pred")), new.bits
    if old_bits == new_bits:
        if old_bits < 8 and new.kind == "unsigned":  # without the copies of the sign
            codes = array.view(np.uint8) & np.uint8((1 << new_bits) - 1)
            return np.asarray(codes).view(dtype)
        return array.view(dtype)
    if min(old_bits, new_bits) < 8:
        return _regrouped(array, old_bits, new_bits).view(dtype)[..., 0]
    array = np.ascontiguousarray(array[..., None] if old_bits > new_bits else array)
    array = array.view(dtype)
    return array if old_bits > new_bits else array[..., 0]


def _regrouped(array: Array, old_bits: int, new_bits: int) -> Array:
    """The bytes of elements of `new_bits` bits as a last dimension, bit by bit."""
    bytes_ = np.ascontiguousarray(array[..., None]).view(np.uint8)
    bits = np.unpackbits(bytes_, axis=-1, bitorder="little")[..., :old_bits]
    groups = (old_bits // new_bits, new_bits) if old_bits > new_bits else (new_bits,)
    outer = array.shape if old_bits > new_bits else array.shape[:-1]
    return np.packbits(bits.reshape(*outer, *groups), axis=-1, bitorder="little")
