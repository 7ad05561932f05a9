"""The number of bytes the buffer of a shape takes."""

from __future__ import annotations

from hloopt.ir.shapes.shape import Shape

POINTER_BYTES = 8
_DYNAMIC_SIZE_BYTES = 4


def shape_bytes(shape: Shape) -> int:
    """Bytes of the buffer for `shape` itself; of a tuple only its table of pointers. O(rank).

    Dynamic dimensions count with their bound and four bytes of metadata each; elements narrower
    than a byte take one, unless the layout packs them (`E(n)`). Tiles add no padding, as on CPU
    and GPU; `tiling.padded_count` pads.
    """
    if shape.element_type is None:
        return POINTER_BYTES * len(shape.elements)
    if not shape.is_array:
        return 0 if shape.is_token else POINTER_BYTES
    return data_bytes(shape) + dynamic_size_bytes(shape)


def data_bytes(array: Shape) -> int:
    """Bytes of an array's elements, dynamic dimensions at their bounds; 0 for other shapes."""
    if array.element_type is None or not array.is_array:
        return 0
    return element_bytes(array, array.element_count())


def element_bytes(array: Shape, count: int) -> int:
    """Bytes of so many elements as an array has them; 0 for other shapes."""
    if array.element_type is None or not array.is_array:
        return 0
    if array.layout.element_bits:
        return (count * array.layout.element_bits + 7) // 8
    return count * array.element_type.bytes


def dynamic_size_bytes(array: Shape) -> int:
    """Bytes that store the sizes of dynamic dimensions behind the data; 0 without any."""
    return _DYNAMIC_SIZE_BYTES * array.rank if array.is_dynamic else 0
