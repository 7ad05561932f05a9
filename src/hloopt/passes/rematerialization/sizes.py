"""Sizes of shapes and compact layouts, as rematerialization is told to count them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from hloopt.analysis.dataflow.slots import slots_of
from hloopt.ir import Shape
from hloopt.ir.shapes.shape_size import element_bytes, shape_bytes

SizeFunction = Literal["bytes", "pad-minor-to-64"] | Callable[[Shape], int]
CompactShapeFunction = Literal["identity", "swap-two-minor-dimensions"] | Callable[[Shape], Shape]

_PADDED_MINOR = 64
_PADDED_TUPLE_BYTES = 4


class Sizes:
    """Bytes of shapes by a size function, and their compact forms. Each shape is asked for once."""

    def __init__(self, size: SizeFunction, compact: CompactShapeFunction) -> None:
        self._size = size if callable(size) else _SIZES[size]
        self._compact = compact if callable(compact) else _COMPACT[compact]
        self._slots: dict[Shape, tuple[int, ...]] = {}

    def of(self, shape: Shape) -> int:
        """Bytes of the buffer for `shape` itself, of a tuple its table of pointers."""
        return self.slots(shape)[0]

    def slots(self, shape: Shape) -> tuple[int, ...]:
        """Bytes of each slot of a shape. O(number of subshapes), once per shape."""
        found = self._slots.get(shape)
        if found is None:
            found = self._slots[shape] = tuple(map(self._size, slots_of(shape).parts))
        return found

    def whole(self, shape: Shape) -> int:
        """Bytes of a shape with all its subshapes."""
        return sum(self.slots(shape))

    def compact(self, shape: Shape) -> Shape:
        """The shape, with the layout of an array while it is compressed."""
        return self._compact(shape)


def padded_bytes(shape: Shape) -> int:
    """Bytes with the most minor dimension rounded up to a multiple of 64; of a tuple 4."""
    if shape.is_tuple:
        return _PADDED_TUPLE_BYTES
    order = shape.layout.minor_to_major
    if not shape.is_array or not order:
        return shape_bytes(shape)
    minor = max(shape.dimensions[order[0]], 0)
    if minor == 0:
        return 0
    padded = -(-minor // _PADDED_MINOR) * _PADDED_MINOR
    return element_bytes(shape, shape.element_count() // minor * padded)


def swap_two_minor_dimensions(shape: Shape) -> Shape:
    """A matrix whose most minor dimension is the smaller one, with the other layout."""
    if not shape.is_array or shape.rank != 2:
        return shape
    minor, major = shape.layout.minor_to_major
    if shape.dimensions[minor] >= shape.dimensions[major]:
        return shape
    return shape.with_layout(shape.layout._replace(minor_to_major=(major, minor)))


def _same(shape: Shape) -> Shape:
    return shape


_SIZES: dict[str, Callable[[Shape], int]] = {
    "bytes": shape_bytes,
    "pad-minor-to-64": padded_bytes,
}
_COMPACT: dict[str, Callable[[Shape], Shape]] = {
    "identity": _same,
    "swap-two-minor-dimensions": swap_two_minor_dimensions,
}
