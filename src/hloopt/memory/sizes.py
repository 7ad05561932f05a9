"""The number of bytes the parts of shapes take."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from hloopt.analysis.dataflow.slots import Index, slots_of
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.ir.shapes.shape_size import shape_bytes


def unpadded_bytes(shape: Shape, index: Index) -> int:
    """Bytes that XLA counts as unpadded for a value defined at `index` of a result's `shape`.

    The default layout, without metadata of dynamic dimensions. XLA looks no deeper than the last
    component of the index in the whole shape, and takes the whole shape where that has none.
    """
    if index and index[-1] < len(shape.elements):
        shape = shape.elements[index[-1]]
    if shape.is_array:
        shape = array_shape(shape.type_name, shape.dimensions)
    return shape_bytes(shape)


SizeRule = Callable[[Shape], int]
"""The bytes of the buffer of a shape by a backend: of a tuple its table of pointers."""


@lru_cache(maxsize=1 << 16)
def slot_bytes(shape: Shape, rule: SizeRule = shape_bytes) -> tuple[int, ...]:
    """The bytes of each slot of a shape. O(number of subshapes), once per shape and rule."""
    return tuple(map(rule, slots_of(shape).parts))
