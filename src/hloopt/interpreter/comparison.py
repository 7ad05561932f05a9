"""Whether two runs gave the same values, up to rounding, and where they first differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloopt.interpreter.values import Array, Value, float_info, type_text

TOLERANCES = {
    **{"float64": 1e-9, "float32": 2e-4, "float16": 1e-2, "bfloat16": 4e-2},
    **{"complex64": 2e-4, "complex128": 1e-9},
}
"""By type of NumPy: how far a value may be off, as a part of itself and of the largest value of
its array. Several times what reordered sums of a few hundred elements lose."""


def _tolerance(dtype: np.dtype[Any]) -> float:
    """TOLERANCES; for floats of eight bits and less a step between neighbours, at the largest."""
    known = TOLERANCES.get(dtype.name)
    if known is not None:
        return known
    return float(float_info(dtype).eps) / 2


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two values first differ."""

    leaf: tuple[int, ...]
    """The tuple index of the array; () where the value is one array."""
    index: tuple[int, ...] | None
    """The element; None where the arrays differ in type or shape."""
    left: str
    right: str
    count: int = 0
    """How many elements of the array differ, of how many."""
    total: int = 0


def first_difference(left: Value, right: Value, *, exact: bool = False) -> Difference | None:
    """The first array of two values that differs, and its first element that does.

    Integers and truth values have to be equal; floats too if `exact`, else up to TOLERANCES. A NaN
    equals any NaN.
    """
    for (leaf, a), (_, b) in zip(_leaves(left), _leaves(right), strict=True):
        difference = _differ(leaf, a, b, exact)
        if difference is not None:
            return difference
    return None


def _leaves(value: Value) -> Iterator[tuple[tuple[int, ...], Array]]:
    """The arrays of a value, each behind its tuple index."""
    stack: list[tuple[tuple[int, ...], Value]] = [((), value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, tuple):
            stack += [((*path, i), element) for i, element in enumerate(value)][::-1]
        elif value is not None:
            yield path, value


def _differ(leaf: tuple[int, ...], a: Array, b: Array, exact: bool) -> Difference | None:
    if a.dtype != b.dtype or a.shape != b.shape:
        return Difference(leaf, None, type_text(a), type_text(b))
    wrong = ~_agree(a, b, exact)
    if not wrong.any():
        return None
    index = tuple(map(int, np.unravel_index(np.argmax(wrong), wrong.shape)))
    return Difference(leaf, index, str(a[index]), str(b[index]), int(wrong.sum()), wrong.size)


def _agree(a: Array, b: Array, exact: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Element by element: whether two arrays of one type agree."""
    if a.dtype.kind in "biu" or a.dtype.name.startswith(("int", "uint")):
        return np.asarray(a == b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        x, y = a.astype(wide), b.astype(wide)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        if exact or same.all():
            return np.asarray(same)
        size = np.abs(x)
        largest = size[np.isfinite(size)].max(initial=0)
        close = np.abs(x - y) <= _tolerance(a.dtype) * (largest + size)
        return np.asarray(same | (close & np.isfinite(x) & np.isfinite(y)))
