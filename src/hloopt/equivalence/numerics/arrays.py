"""The distance of the values of two instructions that belong together."""

from __future__ import annotations

from math import inf

import numpy as np

from hloopt.equivalence.measures import (
    arrays_with_paths,
    eps_of,
    errors_of,
    is_integral,
    unit_at,
)
from hloopt.equivalence.numerics.findings import NO_ERROR, ArrayError
from hloopt.interpreter.arithmetic.conversions import converted
from hloopt.interpreter.values import Array, Value, computing_type, element_name


def error_of(before: Value, after: Value) -> ArrayError | None:
    """The largest error of any array of two values; None where their arrays do not match.

    Floats of two types are counted in ulps of the narrower one. O(elements).
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
    narrower, name = left.dtype, element_name(left)
    if left.dtype != right.dtype:
        if is_integral(left) or is_integral(right) or "c" in left.dtype.kind + right.dtype.kind:
            return None
        narrow, wide = sorted((left, right), key=lambda a: (a.dtype.itemsize, -eps_of(a.dtype)))
        narrower, name = narrow.dtype, element_name(narrow)
        dtype = computing_type(wide.dtype)
        left, right = converted(left, dtype), converted(right, dtype)
    if np.array_equal(left, right):
        return NO_ERROR
    errors = errors_of(left, right)
    if not errors.unequal:
        return NO_ERROR
    finite = errors.sizes[np.isfinite(errors.sizes)]
    size = float(finite.max(initial=0.0))
    largest = errors.largest
    relative = largest / size if size else inf
    if is_integral(left):
        return ArrayError(largest, relative, name, errors.unequal)
    if narrower.kind == "c":
        narrower = np.dtype(f"f{narrower.itemsize // 2}")
    return ArrayError(largest / unit_at(size, narrower), relative, name, errors.unequal)
