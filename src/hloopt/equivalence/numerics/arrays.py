"""The distance of the values of two instructions that belong together."""

from __future__ import annotations

from math import inf

import numpy as np

from hloopt.equivalence.measures import arrays_with_paths, errors_of, is_integral, unit_at
from hloopt.equivalence.numerics.findings import NO_ERROR, ArrayError
from hloopt.interpreter.arithmetic.conversions import converted
from hloopt.interpreter.values import Array, Value, element_name, float_info


def error_of(before: Value, after: Value) -> ArrayError | None:
    """The largest error of any array of two values; None where their arrays do not match.

    Floats of two types are compared in the narrower one. O(elements).
    """
    ours, theirs = list(arrays_with_paths(before)), list(arrays_with_paths(after))
    if [path for path, _ in ours] != [path for path, _ in theirs]:
        return None
    worst, unequal = NO_ERROR, 0
    for (_, left), (_, right) in zip(ours, theirs, strict=True):
        found = _error_of_arrays(left, right)
        if found is None:
            return None
        unequal += found.unequal
        if found.ulps > worst.ulps or (found.unequal and not worst.unequal):
            worst = found
    return worst._replace(unequal=unequal)


def _error_of_arrays(left: Array, right: Array) -> ArrayError | None:
    if left.shape != right.shape:
        return None
    if left.dtype != right.dtype:
        if is_integral(left) or is_integral(right) or "c" in left.dtype.kind + right.dtype.kind:
            return None
        narrower = min((left.dtype, right.dtype), key=lambda d: (d.itemsize, -_eps(d)))
        left, right = converted(left, narrower), converted(right, narrower)
    if np.array_equal(left, right):
        return NO_ERROR
    errors = errors_of(left, right)
    if not errors.unequal:
        return NO_ERROR
    finite = errors.sizes[np.isfinite(errors.sizes)]
    size = float(finite.max(initial=0.0))
    largest = errors.largest
    name = element_name(left)
    if is_integral(left):
        return ArrayError(largest, largest / size if size else inf, name, errors.unequal)
    dtype = left.dtype if left.dtype.kind != "c" else np.dtype(f"f{left.dtype.itemsize // 2}")
    relative = largest / size if size else inf
    return ArrayError(largest / unit_at(size, dtype), relative, name, errors.unequal)


def _eps(dtype: np.dtype[np.generic]) -> float:
    return float(float_info(dtype).eps)
