"""Shapes: immutable, interned values, so that equality is identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TypeVar

from hloopt.diagnostics import ShapeError
from hloopt.ir.shapes.element_type import ELEMENT_TYPES, ElementType
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE, Layout, default_layout

_Value = TypeVar("_Value")


class Shape:
    """An array, tuple, token or opaque shape; compare with `is`.

    Made by `array_shape` and `tuple_shape` only (`shape_parser` calls them), which return one
    object per distinct shape. A shape written without layout has the default (descending) one.
    """

    __slots__ = (
        "_text",
        "dimensions",
        "dynamic",
        "element_type",
        "elements",
        "is_buffer",
        "layout",
    )

    element_type: ElementType | None  # None: a tuple
    dimensions: tuple[int, ...]  # sizes; the bound of a `<=n` dimension, -1 for `?`
    dynamic: tuple[bool, ...]  # per dimension
    layout: Layout
    elements: tuple[Shape, ...]  # of a tuple
    is_buffer: bool  # written b(…)
    _text: str | None

    @property
    def is_tuple(self) -> bool:
        return self.element_type is None

    @property
    def is_array(self) -> bool:
        return self.element_type is not None and self.element_type.bits > 0

    @property
    def is_token(self) -> bool:
        return self.element_type is not None and self.element_type.kind == "token"

    @property
    def is_scalar(self) -> bool:
        return self.is_array and not self.dimensions

    @property
    def is_dynamic(self) -> bool:
        """Whether a dimension of this array is dynamic."""
        return any(self.dynamic)

    @property
    def is_unbounded_dynamic(self) -> bool:
        """Whether a dimension of this array has no bound."""
        return min(self.dimensions, default=0) < 0

    @property
    def is_bounded_dynamic(self) -> bool:
        """Whether a dimension of this array is dynamic and has a bound."""
        return any(d and size >= 0 for d, size in zip(self.dynamic, self.dimensions, strict=True))

    @property
    def is_on_host(self) -> bool:
        """Whether it is an array in the memory of the host; a tuple is nowhere."""
        return self.is_array and self.layout.memory_space == HOST_MEMORY_SPACE

    @property
    def rank(self) -> int:
        return len(self.dimensions)

    @property
    def type_name(self) -> str:
        """The element type's name; "tuple" for a tuple."""
        return self.element_type.name if self.element_type else "tuple"

    def element_count(self) -> int:
        """Number of elements of an array, dynamic dimensions at their bound."""
        return prod(max(size, 0) for size in self.dimensions)

    @property
    def text(self) -> str:
        """The shape as XLA prints it, layout included."""
        if self._text is None:
            self._text = _format(self, layout=True)
        return self._text

    def keep_text(self, text: str) -> None:
        """Remember `text`, which is this shape as XLA prints it."""
        self._text = text

    def with_layout(self, layout: Layout) -> Shape:
        """This array with another layout."""
        assert self.element_type is not None
        return array_shape(
            self.element_type.name, self.dimensions, self.dynamic, layout, self.is_buffer
        )

    def with_memory_space(self, space: int) -> Shape:
        """This array in another memory."""
        return self.with_layout(self.layout._replace(memory_space=space))

    def with_element_type(self, name: str) -> Shape:
        """This array with another element type; for a tuple, each element's changed."""
        if self.is_tuple:
            return tuple_shape(element.with_element_type(name) for element in self.elements)
        return array_shape(name, self.dimensions, self.dynamic, self.layout, self.is_buffer)

    def leaves(self) -> list[Shape]:
        """The shapes that are not tuples, in pre-order; a shape that is not a tuple is its own.

        O(shapes within): without the indices, whose length is the depth.
        """
        result: list[Shape] = []
        stack = [self]
        while stack:
            shape = stack.pop()
            if shape.element_type is None:
                stack.extend(reversed(shape.elements))
            else:
                result.append(shape)
        return result

    def subshapes(self) -> list[tuple[tuple[int, ...], Shape]]:
        """Every shape index with its shape, in pre-order. O(result).

        An index is as long as its depth: see `check_depth`.
        """
        result: list[tuple[tuple[int, ...], Shape]] = []
        stack: list[tuple[tuple[int, ...], Shape]] = [((), self)]
        while stack:
            index, shape = stack.pop()
            result.append((index, shape))
            for i in range(len(shape.elements) - 1, -1, -1):
                stack.append(((*index, i), shape.elements[i]))
        return result

    def check_depth(self) -> None:
        """Raise ShapeError where tuples are nested so deeply that looking at all is quadratic."""
        level = [self]
        for _ in range(_DEEPEST + 1):
            level = [part for shape in level for part in shape.elements]
            if not level:
                return
        raise ShapeError(
            f"a tuple is nested more than {_DEEPEST} levels deep",
            help="what reads and prints modules takes it; what looks into tuples does not",
        )

    def __repr__(self) -> str:
        return f"Shape({self.text!r})"

    def __reduce__(self) -> tuple[object, ...]:
        if self.is_tuple:
            return tuple_shape, (self.elements,)
        return array_shape, (
            *(self.type_name, self.dimensions, self.dynamic, self.layout, self.is_buffer),
        )


_DEEPEST = 500
"""The most levels of nested tuples whose elements are looked at one by one."""


_ARRAYS: dict[tuple[object, ...], Shape] = {}
_TUPLES: dict[tuple[Shape, ...], Shape] = {}


def _make(
    element_type: ElementType | None,
    dimensions: tuple[int, ...],
    dynamic: tuple[bool, ...],
    layout: Layout,
    elements: tuple[Shape, ...],
    is_buffer: bool,
) -> Shape:
    shape = Shape.__new__(Shape)
    shape.element_type = element_type
    shape.dimensions = dimensions
    shape.dynamic = dynamic
    shape.layout = layout
    shape.elements = elements
    shape.is_buffer = is_buffer
    shape._text = None
    return shape


def array_shape(
    element_type: str,
    dimensions: tuple[int, ...] = (),
    dynamic: tuple[bool, ...] = (),
    layout: Layout | None = None,
    is_buffer: bool = False,
) -> Shape:
    """The array (or token, or opaque) shape with these properties."""
    if True not in dynamic:
        dynamic = (False,) * len(dimensions)
    if layout is None:
        layout = default_layout(len(dimensions))
    key = (element_type, dimensions, dynamic, layout, is_buffer)
    shape = _ARRAYS.get(key)
    if shape is None:
        kind = ELEMENT_TYPES[element_type]
        shape = _ARRAYS[key] = _make(kind, dimensions, dynamic, layout, (), is_buffer)
    return shape


def tuple_shape(elements: Iterable[Shape]) -> Shape:
    """The tuple shape of these elements."""
    key = tuple(elements)
    shape = _TUPLES.get(key)
    if shape is None:
        shape = _TUPLES[key] = _make(None, (), (), default_layout(0), key, False)
    return shape


def compatible(a: Shape, b: Shape) -> bool:
    """Whether two shapes agree in all but layouts. O(number of subshapes)."""
    return a is b or without_layout(a) is without_layout(b)


def agree(a: Shape, b: Shape, *, any_precision: bool = False) -> bool:
    """Whether two shapes can stand for each other, layouts and dynamism aside.

    An unbounded dimension goes with any size; with `any_precision` a floating-point type goes
    with any other. O(number of subshapes).
    """
    if (
        a.element_type is not None
        and a.element_type is b.element_type
        and a.dimensions == b.dimensions
        and a.is_buffer == b.is_buffer
    ):
        return True
    if a.is_tuple and compatible(a, b):
        return True
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if x.is_tuple or y.is_tuple:
            if x.is_tuple != y.is_tuple or len(x.elements) != len(y.elements):
                return False
            stack += zip(x.elements, y.elements, strict=True)
        else:
            types_agree = same_kind(x, y) if any_precision else x.element_type is y.element_type
            if not types_agree or x.is_buffer != y.is_buffer:
                return False
            if not sizes_agree(x.dimensions, y.dimensions):
                return False
    return True


def sizes_agree(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether sizes are equal, an unbounded one going with any other."""
    return len(a) == len(b) and all(x == y or x < 0 or y < 0 for x, y in zip(a, b, strict=True))


def same_type(a: Shape, b: Shape) -> bool:
    """Whether two element types are equal."""
    return a.element_type is b.element_type


def same_kind(a: Shape, b: Shape) -> bool:
    """Whether two element types are equal, or both floating-point."""
    x, y = a.element_type, b.element_type
    return x is y or (x is not None and y is not None and x.is_floating and y.is_floating)


_WITHOUT_LAYOUT: dict[Shape, Shape] = {}


def without_layout(shape: Shape) -> Shape:
    """`shape` with default layouts throughout; a value to compare shapes by, layouts aside."""
    return _WITHOUT_LAYOUT.get(shape) or fold(shape, _with_default, tuple_shape, _WITHOUT_LAYOUT)


def without_packing(shape: Shape) -> Shape:
    """`shape` without `E(n)` in its layouts: each element takes whole bytes."""
    return fold(shape, _with_whole_bytes, tuple_shape, {}) if "E(" in shape.text else shape


def _with_default(array: Shape) -> Shape:
    return array_shape(array.type_name, array.dimensions, array.dynamic, None, array.is_buffer)


def _with_whole_bytes(array: Shape) -> Shape:
    layout = array.layout
    return array.with_layout(layout._replace(element_bits=0)) if layout.element_bits else array


def fold(
    shape: Shape,
    of_leaf: Callable[[Shape], _Value],
    of_tuple: Callable[[list[_Value]], _Value],
    known: dict[Shape, _Value],
) -> _Value:
    """The value of a shape: `of_leaf` of what is no tuple, `of_tuple` of the values of elements.

    Values are taken from `known`, and added to it. No deep recursion, and each distinct shape once.
    """
    stack = [shape]
    while stack:
        part = stack.pop()
        if part in known:
            continue
        new = [element for element in part.elements if element not in known]
        if new:
            stack += part, *new
        elif part.is_tuple:
            known[part] = of_tuple([known[element] for element in part.elements])
        else:
            known[part] = of_leaf(part)
    return known[shape]


_BARE_TEXTS: dict[Shape, str] = {}


def format_shape(shape: Shape, *, layout: bool = True) -> str:
    """`shape` as XLA prints it, with or without layouts. Written once per shape."""
    if layout:
        return shape.text
    text = _BARE_TEXTS.get(shape)
    if text is None:
        text = _BARE_TEXTS[shape] = _format(shape, layout=False)
    return text


def _format(shape: Shape, *, layout: bool) -> str:
    """`f32[2,<=3]{1,0}`, `(s32[], /*index=…*/ …)`."""
    if shape.element_type is not None:
        return _format_array(shape, layout)
    if None not in [element.element_type for element in shape.elements]:
        texts = [format_shape(element, layout=layout) for element in shape.elements]
        for i in range(5, len(texts), 5):
            texts[i] = f"/*index={i}*/{texts[i]}"
        return f"({', '.join(texts)})"
    out: list[str] = []
    stack: list[Shape | str] = [shape]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
        elif item.is_tuple:
            stack.append(")")
            for i in range(len(item.elements) - 1, -1, -1):
                stack.append(item.elements[i])
                if i:
                    stack.append(f", /*index={i}*/" if i % 5 == 0 else ", ")
            stack.append("(")
        else:
            out.append(format_shape(item, layout=layout))  # which remembers it
    return "".join(out)


def _format_array(shape: Shape, layout: bool) -> str:
    if True in shape.dynamic:
        dimensions = ",".join(
            "?" if size < 0 else f"<={size}" if dynamic else str(size)
            for size, dynamic in zip(shape.dimensions, shape.dynamic, strict=True)
        )
    else:
        dimensions = ",".join(map(str, shape.dimensions))
    text = f"{shape.type_name}[{dimensions}]"
    if layout and shape.is_array:
        text += shape.layout.text
    return f"b({text})" if shape.is_buffer else text
