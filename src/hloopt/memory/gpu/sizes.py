"""The bytes that XLA:GPU gives arrays."""

from __future__ import annotations

from functools import lru_cache

from hloopt.ir.shape_inference.element_types import is_packed
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.shapes.shape_size import shape_bytes


@lru_cache(maxsize=1 << 16)
def packed_bytes(shape: Shape) -> int:
    """Bytes of the buffer for `shape`, elements narrower than a byte packed.

    A pass of XLA:GPU packs them all. Texts from before it have no `E(n)` yet, and where constants
    are read it is lost: a reader takes the shape of the literal.
    """
    element = shape.element_type
    if shape.is_array and element is not None and is_packed(element.name):
        shape = shape.with_layout(shape.layout._replace(element_bits=element.bits))
    return shape_bytes(shape)
