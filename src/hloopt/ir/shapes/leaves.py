"""The leaves of a shape, which are its arrays and tokens, numbered in pre-order."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

from hloopt.ir.ordering import depth_first
from hloopt.ir.shapes.shape import Shape

_COUNTS: dict[Shape, int] = {}


def leaf_count(shape: Shape) -> int:
    """The number of leaves a shape has. O(subshapes not met before)."""
    count = _COUNTS.get(shape)
    if count is None:
        for part in depth_first([shape], _not_counted):
            _COUNTS[part] = sum([_COUNTS[e] for e in part.elements]) if part.is_tuple else 1
        count = _COUNTS[shape]
    return count


def _not_counted(shape: Shape) -> list[Shape]:
    return [element for element in shape.elements if element not in _COUNTS]


def element_range(shape: Shape, index: int) -> slice:
    """The leaves of a tuple shape that belong to its element `index`. O(1) once per shape."""
    ends = _leaf_ends(shape)
    return slice(ends[index - 1] if index else 0, ends[index])


def index_range(shape: Shape, index: tuple[int, ...]) -> slice:
    """The leaves of a shape that are at a shape index or below it. O(length of the index)."""
    start = 0
    for number in index:
        start += element_range(shape, number).start
        shape = shape.elements[number]
    return slice(start, start + leaf_count(shape))


@lru_cache(1 << 10)
def _leaf_ends(shape: Shape) -> tuple[int, ...]:
    return tuple(accumulate(map(leaf_count, shape.elements)))
