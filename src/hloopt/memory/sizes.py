"""The number of bytes that backends give the values of a module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hloopt.analysis.dataflow.slots import Index, slots_of
from hloopt.ir.shape_inference.element_types import is_packed
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.ir.shapes.shape_size import (
    POINTER_BYTES,
    dynamic_size_bytes,
    element_bytes,
    shape_bytes,
)
from hloopt.ir.shapes.tiling import padded_count


@dataclass(frozen=True, slots=True)
class SizeRule:
    """The rule by which a backend sizes and aligns the buffers of values."""

    alignment: int
    """Bytes: where temporaries may begin."""
    pads_tiles: bool = False
    """Whether arrays fill whole tiles of their layouts."""
    packs_narrow: bool = False
    """Whether elements narrower than a byte are packed, whatever the layout says."""
    pointer_bytes: int = POINTER_BYTES
    """Of an entry in the table that stands for a tuple."""

    def bytes(self, shape: Shape) -> int:
        """Bytes of the buffer for `shape` itself, of a tuple its table of pointers.

        Of an array its data and the sizes of its dynamic dimensions. O(rank), once per shape.
        """
        return _bytes(self, shape)

    def slots(self, shape: Shape) -> tuple[int, ...]:
        """Bytes of each slot of a shape. O(number of subshapes), once per shape."""
        return _slots(self, shape)

    def data_bytes(self, array: Shape) -> int:
        """Bytes of an array's elements and padding, dynamic dimensions at their bounds. O(rank)."""
        element = array.element_type
        if self.packs_narrow and element is not None and is_packed(element.name):
            array = array.with_layout(array.layout._replace(element_bits=element.bits))
        count = padded_count(array) if self.pads_tiles else array.element_count()
        return element_bytes(array, count)

    def _metadata_bytes(self, array: Shape) -> int:
        """Bytes that store the sizes of dynamic dimensions; 0 without any.

        Where arrays have tiles, `M(n)` says how many there are before the data.
        """
        if self.pads_tiles and array.is_dynamic and array.layout.dynamic_metadata_bytes:
            return array.layout.dynamic_metadata_bytes
        return dynamic_size_bytes(array)


@lru_cache(maxsize=1 << 16)
def _bytes(rule: SizeRule, shape: Shape) -> int:
    if shape.is_tuple:
        return rule.pointer_bytes * len(shape.elements)
    if not shape.is_array:
        return 0 if shape.is_token else rule.pointer_bytes
    return rule.data_bytes(shape) + rule._metadata_bytes(shape)


@lru_cache(maxsize=1 << 16)
def _slots(rule: SizeRule, shape: Shape) -> tuple[int, ...]:
    return tuple(map(rule.bytes, slots_of(shape).parts))


CPU_SIZES = SizeRule(alignment=64)
GPU_SIZES = SizeRule(alignment=256, packs_narrow=True)
"""A pass of XLA:GPU packs all narrow elements. Texts from before it have no `E(n)` yet, and where
constants are read it is lost: a reader takes the shape of the literal."""
TPU_SIZES = SizeRule(alignment=512, pads_tiles=True)


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
