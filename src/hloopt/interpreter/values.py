"""Values while a program runs, and their types in NumPy.

An array is an `ndarray`, a scalar one of rank 0, a tuple a Python tuple, a token None. An array of
a shape with dynamic dimensions has its size of the moment: it may be smaller than the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from hloopt.interpreter.errors import RunError
from hloopt.ir.shapes.element_type import ELEMENT_TYPES, ElementType
from hloopt.ir.shapes.shape import Shape

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Value: TypeAlias = Any
"""An Array, a tuple of values, or None for a token. Arrays are never changed in place."""

_NUMPY_NAMES = {
    "pred": "bool",
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{"f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64"},
    "c128": "complex128",
}
_ML_DTYPES_NAMES = {
    "bf16": "bfloat16",
    **{f"s{bits}": f"int{bits}" for bits in (1, 2, 4)},
    **{f"u{bits}": f"uint{bits}" for bits in (1, 2, 4)},
}


@cache
def dtype_of(element: ElementType) -> np.dtype[Any]:
    """The NumPy type of an element type. Raises RunError where there is none (token, opaque)."""
    name = element.name
    if name in _NUMPY_NAMES:
        return np.dtype(_NUMPY_NAMES[name])
    # f8e4m3fn is float8_e4m3fn there
    known = _ML_DTYPES_NAMES.get(name, name.replace("f", "float", 1).replace("e", "_e", 1))
    if not hasattr(ml_dtypes, known):
        raise RunError(f"there are no values of type {name}")
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, known))
    return found


def dtype_of_shape(shape: Shape) -> np.dtype[Any]:
    """The NumPy type of an array shape."""
    assert shape.element_type is not None
    return dtype_of(shape.element_type)


@cache
def _type_names() -> dict[np.dtype[Any], str]:
    return {
        dtype_of(element): name
        for name, element in ELEMENT_TYPES.items()
        if element.kind not in ("token", "opaque")
    }


def type_text(array: Array) -> str:
    """The shape of an array in HLO: `f32[2,3]`."""
    return f"{element_name(array)}[{','.join(map(str, array.shape))}]"


def element_name(array: Array) -> str:
    """The element type of an array in HLO; NumPy's name for one that HLO does not have."""
    return _type_names().get(array.dtype, str(array.dtype))


@cache
def computing_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which values of `dtype` are computed: floats of less than 32 bits as f32, rounded
    once at the end, integers of less than 8 bits as s8 or u8."""
    if dtype.name in ("int1", "int2", "int4"):
        return np.dtype(np.int8)
    if dtype.name in ("uint1", "uint2", "uint4"):
        return np.dtype(np.uint8)
    is_small_float = dtype.kind in "fV" and dtype.itemsize < 4
    return np.dtype(np.float32) if is_small_float else dtype


def float_info(dtype: np.dtype[Any]) -> ml_dtypes.finfo:
    """The limits of a float type, those of `ml_dtypes` included."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # it has no annotations


def widened(array: Array) -> Array:
    """The same values in the type they are computed in."""
    dtype = computing_type(array.dtype)
    return array if array.dtype is dtype else array.astype(dtype, copy=False)


def make_value(shape: Shape, make: Callable[[Shape], Array]) -> Value:
    """A value of `shape`, each array of it made by `make`, however deep tuples are nested."""
    built: list[list[Value]] = [[]]  # tuples not yet complete, the innermost last
    stack: list[Shape | None] = [shape]  # None: the innermost is complete
    while stack:
        current = stack.pop()
        if current is None:
            complete = tuple(built.pop())
            built[-1].append(complete)
        elif current.is_tuple:
            built.append([])
            stack += [None, *reversed(current.elements)]
        else:
            built[-1].append(None if current.is_token else make(current))
    return built[0][0]


def has_shape(value: Value, shape: Shape) -> bool:
    """Whether a value is one of `shape`; dynamic dimensions may have any size up to their bound."""
    if shape.is_tuple:
        return (
            isinstance(value, tuple)
            and len(value) == len(shape.elements)
            and all(map(has_shape, value, shape.elements))
        )
    if shape.is_token:
        return value is None
    return (
        isinstance(value, np.ndarray)
        and value.dtype == dtype_of_shape(shape)
        and fits_in(value.shape, shape)
    )


def fits_in(sizes: tuple[int, ...], shape: Shape) -> bool:
    """Whether an array of these sizes is one of `shape`, dynamic dimensions up to their bound."""
    return len(sizes) == shape.rank and all(
        size == bound or (is_dynamic and (size <= bound or bound < 0))
        for size, bound, is_dynamic in zip(
            sizes, shape.dimensions, shape.dynamic or [False] * shape.rank, strict=True
        )
    )


def value_text(value: object) -> str:
    """The shape of a value, in HLO's words where it has any: `(f32[2,3], token[])`."""
    if isinstance(value, tuple):
        return f"({', '.join(map(value_text, value))})"
    if value is None:
        return "token[]"
    return type_text(value) if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def joined(shape: Shape, results: Sequence[Value]) -> Value:
    """The results of an instruction as one value of its shape: a tuple, or the only one."""
    return tuple(results) if shape.is_tuple else results[0]


def zeros(shape: Shape) -> Value:
    """The value of `shape` that is zero throughout, dynamic dimensions at their bound."""
    return make_value(shape, lambda s: np.zeros(s.dimensions, dtype_of_shape(s)))


@lru_cache(1024)
def bytes_of(shape: Shape) -> int:
    """Bytes of the arrays of a value, dynamic dimensions at their bound."""
    return sum(
        dtype_of_shape(leaf).itemsize * leaf.element_count()
        for leaf in shape.leaves()
        if leaf.is_array and not leaf.is_unbounded_dynamic
    )


def arrays_of(value: Value) -> Iterator[Array]:
    """The arrays of a value, in the order of the shape's leaves; tokens are left out."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack += reversed(value)
        elif value is not None:
            yield value
