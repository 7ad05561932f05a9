"""Element types of results: the higher precision of two, components of complex types."""

from __future__ import annotations

from functools import cache

from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.shape import Shape, array_shape

# Ascending in exponent range, then in precision: the wider range wins, so bf16 beats f16.
_FLOATS = (
    *("f4e2m1fn", "f6e2m3fn", "f8e3m4", "f6e3m2fn", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e4m3"),
    *("f8e4m3fn", "f8e5m2fnuz", "f8e5m2", "f16", "f8e8m0fnu", "bf16", "f32", "f64"),
)
_COMPLEX_OF = {"f32": "c64", "f64": "c128"}
_COMPONENT_OF = {"c64": "f32", "c128": "f64"}


@cache
def higher_precision(a: str, b: str) -> str:
    """The one of two element types that a result of mixed precision has."""
    return max(a, b, key=_rank)


def _rank(name: str) -> tuple[bool, int, int, bool]:
    component = _COMPONENT_OF.get(name, name)
    range_order = _FLOATS.index(component) if component in _FLOATS else -1
    kind = ELEMENT_TYPES[name]
    return kind.kind == "complex", range_order, kind.bits, kind.kind == "signed"


def complex_of(component: str) -> str | None:
    """The complex type with these components, None where there is none."""
    return _COMPLEX_OF.get(component)


def component_of(name: str) -> str:
    """The type of a complex type's components; other types stand for themselves."""
    return _COMPONENT_OF.get(name, name)


def is_packed(name: str) -> bool:
    """Whether several elements of this type can share a byte."""
    return ELEMENT_TYPES[name].bits < 8 and name != "pred"


def with_type(shape: Shape, name: str) -> Shape:
    """`shape` with another element type, its packing `E(n)` dropped if that changes the type."""
    if shape.type_name == name:
        return shape
    layout = shape.layout
    if layout.element_bits:
        layout = layout._replace(element_bits=0)
    return array_shape(name, shape.dimensions, shape.dynamic, layout, shape.is_buffer)
