"""Whether two values agree up to what rounding does in sums of a few hundred elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hloopt.equivalence.measures import (
    allowed,
    arrays_with_paths,
    errors_of,
    is_integral,
    loose_tolerance,
)
from hloopt.interpreter.values import Value, type_text


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first array of two values that differs, and its first element that does."""

    leaf: tuple[int, ...]
    index: tuple[int, ...] | None
    left: str
    right: str
    count: int = 0
    total: int = 0


def first_difference(left: Value, right: Value, *, exact: bool = False) -> Disagreement | None:
    """The first array, in the order of tuples, that differs.

    Integers have to be equal; floats too if `exact`, else up to `measures.LOOSE`. A NaN equals any
    NaN. O(elements).
    """
    pairs = zip(arrays_with_paths(left), arrays_with_paths(right), strict=True)
    for (leaf, a), (_, b) in pairs:
        if a.dtype != b.dtype or a.shape != b.shape:
            return Disagreement(leaf, None, type_text(a), type_text(b))
        errors = errors_of(a, b)
        off = np.asarray(errors.absolute > 0)
        if not exact and not is_integral(a):
            off = ~errors.within(allowed(errors, loose_tolerance(a.dtype)))
        if off.any():
            index = tuple(map(int, np.unravel_index(np.argmax(off), off.shape)))
            return Disagreement(leaf, index, str(a[index]), str(b[index]), int(off.sum()), off.size)
    return None
