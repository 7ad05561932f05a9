"""Shapes and layouts as messages."""

from __future__ import annotations

from typing import Any

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.layout import Layout, default_layout
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.proto.schema import enum_names, enum_numbers

_MOST = 10**18 - 1
"""The largest number that the text form of a layout can hold."""
_UNBOUNDED = -(1 << 63)
"""The size of a dimension that is written `?`, and in a tile of one that is written `*`."""


class ShapeReader:
    """Turns ShapeProtos into shapes, each distinct one once."""

    def __init__(self) -> None:
        self._known: dict[bytes, Shape] = {}

    def read(self, proto: Any) -> Shape:
        """The shape in `proto`. Raises HloSyntaxError."""
        key = proto.SerializeToString()
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = _read(proto)
        return shape


def _read(proto: Any) -> Shape:
    kind = enum_names("PrimitiveType").get(proto.element_type, "")
    if kind == "TUPLE":
        return tuple_shape(_read(element) for element in proto.tuple_shapes)
    if kind == "BUFFER":
        inner = _read(proto.tuple_shapes[0]) if len(proto.tuple_shapes) == 1 else None
        if inner is None or not inner.is_array or inner.is_buffer:
            raise HloSyntaxError("a buffer shape holds one array shape")
        return array_shape(inner.type_name, inner.dimensions, inner.dynamic, inner.layout, True)
    name = _name_of(proto.element_type)
    if name not in ELEMENT_TYPES:
        raise HloSyntaxError(f"a shape has the unknown element type {proto.element_type}")
    sizes = tuple(-1 if size == _UNBOUNDED else size for size in proto.dimensions)
    if any(size < 0 for size in proto.dimensions if size != _UNBOUNDED):
        raise HloSyntaxError(f"a shape has the negative dimension {min(proto.dimensions)}")
    flags = proto.is_dynamic_dimension
    if len(flags) not in (0, len(sizes)):
        raise HloSyntaxError(f"a shape of {len(sizes)} dimensions has {len(flags)} dynamic flags")
    dynamic = tuple(size < 0 or (i < len(flags) and flags[i]) for i, size in enumerate(sizes))
    layout = default_layout(len(sizes))
    if proto.HasField("layout"):
        layout = _read_layout(proto.layout, len(sizes))
    return array_shape(name, sizes, dynamic, layout)


def _read_layout(proto: Any, rank: int) -> Layout:
    order = tuple(proto.minor_to_major)
    if len(order) != rank or any(not 0 <= dimension < rank for dimension in order):
        raise HloSyntaxError(f"a layout orders {list(order)}, the shape has {rank} dimensions")
    return Layout(
        order,
        tiles=tuple(_read_tile(tile.dimensions) for tile in proto.tiles),
        tail_padding=_natural(proto.tail_padding_alignment_in_elements) or 1,
        index_type=_type_name(proto.index_primitive_type),
        pointer_type=_type_name(proto.pointer_primitive_type),
        element_bits=_natural(proto.element_size_in_bits),
        memory_space=_natural(proto.memory_space),
        splits="".join(map(_read_split, proto.split_configs)),
        dynamic_metadata_bytes=_natural(proto.dynamic_shape_metadata_prefix_bytes),
    )


def _read_tile(sizes: Any) -> str:
    return f"({','.join('*' if size == _UNBOUNDED else str(_natural(size)) for size in sizes)})"


def _read_split(proto: Any) -> str:
    if not proto.split_indices:
        raise HloSyntaxError(f"a layout splits dimension {proto.dimension} nowhere")
    indices = map(_natural, proto.split_indices)
    return f"({_natural(proto.dimension)}:{','.join(map(str, indices))})"


def _natural(number: int) -> int:
    if number < 0:
        raise HloSyntaxError(f"a layout has the negative number {number}")
    if number > _MOST:
        raise HloSyntaxError(f"a layout has the number {number}, which is too large")
    return number


def _type_name(number: int) -> str:
    """The name of an element type in a layout; empty for none."""
    if not number:
        return ""
    name = _name_of(number)
    if name not in ELEMENT_TYPES:
        raise HloSyntaxError(f"a layout has the unknown element type {number}")
    return name


def _name_of(number: int) -> str:
    """The name of a PrimitiveType in text; empty for an unknown one."""
    name = enum_names("PrimitiveType").get(number, "")
    return "opaque" if name == _OPAQUE else name.lower()


def _number_of(name: str) -> int:
    return enum_numbers("PrimitiveType")[_OPAQUE if name == "opaque" else name.upper()]


_OPAQUE = "OPAQUE_TYPE"


def write_shape(shape: Shape, proto: Any) -> None:
    """Fill the ShapeProto `proto`. O(subshapes)."""
    types = enum_numbers("PrimitiveType")
    if shape.is_tuple:
        proto.element_type = types["TUPLE"]
        for element in shape.elements:
            write_shape(element, proto.tuple_shapes.add())
        return
    if shape.is_buffer:
        proto.element_type = types["BUFFER"]
        proto = proto.tuple_shapes.add()
    name = shape.type_name
    proto.element_type = _number_of(name)
    proto.dimensions.extend(_UNBOUNDED if size < 0 else size for size in shape.dimensions)
    proto.is_dynamic_dimension.extend(shape.dynamic)
    if shape.is_array:
        _write_layout(shape.layout, proto.layout)


def _write_layout(layout: Layout, proto: Any) -> None:
    proto.minor_to_major.extend(layout.minor_to_major)
    for tile in layout.tiles:
        sizes = [size for size in tile[1:-1].split(",") if size]
        proto.tiles.add().dimensions.extend(
            _UNBOUNDED if size == "*" else int(size) for size in sizes
        )
    proto.tail_padding_alignment_in_elements = layout.tail_padding
    if layout.index_type:
        proto.index_primitive_type = _number_of(layout.index_type)
    if layout.pointer_type:
        proto.pointer_primitive_type = _number_of(layout.pointer_type)
    proto.element_size_in_bits = layout.element_bits
    proto.memory_space = layout.memory_space
    proto.dynamic_shape_metadata_prefix_bytes = layout.dynamic_metadata_bytes
    for split in layout.splits.strip("()").split(")(") if layout.splits else ():
        dimension, _, indices = split.partition(":")
        proto.split_configs.add(
            dimension=int(dimension), split_indices=[int(i) for i in indices.split(",") if i]
        )
