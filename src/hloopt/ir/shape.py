"""Shapes and layouts: immutable, interned values, so that equality is identity."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod
from typing import NamedTuple

from hloopt.diagnostics import ShapeError, did_you_mean
from hloopt.ir.element_type import ELEMENT_TYPES, ElementType
from hloopt.ir.trivia import skip_trivia
from hloopt.patterns import pattern


class Layout(NamedTuple):
    """How an array lies in memory; a field at its default is not printed.

    `minor_to_major` lists dimensions from the fastest varying one; `memory_space` is `S(n)`;
    `element_bits` is `E(n)`, 0 where elements take whole bytes.
    """

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[str, ...] = ()
    tail_padding: int = 1
    index_type: str = ""
    pointer_type: str = ""
    element_bits: int = 0
    memory_space: int = 0
    splits: str = ""
    dynamic_metadata_bytes: int = 0

    @property
    def text(self) -> str:
        """The layout as XLA prints it, braces included; empty for a scalar's default."""
        parts = ["T" + tile if i == 0 else tile for i, tile in enumerate(self.tiles)]
        if self.tail_padding != 1:
            parts.append(f"L({self.tail_padding})")
        if self.index_type:
            parts.append(f"#({self.index_type})")
        if self.pointer_type:
            parts.append(f"*({self.pointer_type})")
        if self.element_bits:
            parts.append(f"E({self.element_bits})")
        if self.memory_space:
            parts.append(f"S({self.memory_space})")
        if self.splits:
            parts.append(f"SC{self.splits}")
        if self.dynamic_metadata_bytes:
            parts.append(f"M({self.dynamic_metadata_bytes})")
        order = ",".join(map(str, self.minor_to_major))
        if parts:
            return f"{{{order}:{''.join(parts)}}}"
        return f"{{{order}}}" if order else ""


class Shape:
    """An array, tuple, token or opaque shape; compare with `is`.

    Made by `parse_shape`, `array_shape` and `tuple_shape` only, which return one object per
    distinct shape. A shape written without layout has the default (descending) one.
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

    def with_layout(self, layout: Layout) -> Shape:
        """This array with another layout."""
        assert self.element_type is not None
        return array_shape(
            self.element_type.name, self.dimensions, self.dynamic, layout, self.is_buffer
        )

    def with_element_type(self, name: str) -> Shape:
        """This array with another element type; for a tuple, each element's changed."""
        if self.is_tuple:
            return tuple_shape(element.with_element_type(name) for element in self.elements)
        return array_shape(name, self.dimensions, self.dynamic, self.layout, self.is_buffer)

    def leaves(self) -> list[Shape]:
        """The shapes that are not tuples, in pre-order; a shape that is no tuple is its own."""
        return [shape for _, shape in self.subshapes() if not shape.is_tuple]

    def subshapes(self) -> list[tuple[tuple[int, ...], Shape]]:
        """Every shape index with its shape, in pre-order. O(result)."""
        result: list[tuple[tuple[int, ...], Shape]] = []
        stack: list[tuple[tuple[int, ...], Shape]] = [((), self)]
        while stack:
            index, shape = stack.pop()
            result.append((index, shape))
            for i in range(len(shape.elements) - 1, -1, -1):
                stack.append(((*index, i), shape.elements[i]))
        return result

    def __repr__(self) -> str:
        return f"Shape({self.text!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return parse_shape, (self.text,)


_ARRAYS: dict[tuple[object, ...], Shape] = {}
_TUPLES: dict[tuple[Shape, ...], Shape] = {}
_LAYOUTS: dict[tuple[int, ...], Layout] = {}


def _layout_in_order(minor_to_major: tuple[int, ...]) -> Layout:
    """The interned layout that has an order of dimensions and nothing else."""
    layout = _LAYOUTS.get(minor_to_major)
    if layout is None:
        layout = _LAYOUTS[minor_to_major] = Layout(minor_to_major)
    return layout


def default_layout(rank: int) -> Layout:
    """The descending layout: the last dimension varies fastest."""
    return _layout_in_order(tuple(range(rank - 1, -1, -1)))


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
    if not any(dynamic):
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


def agrees(stated: Shape, actual: Shape) -> bool:
    """Whether a shape that is written down again agrees with the one it repeats.

    Layouts and what is dynamic do not count, and `?` agrees with every size. O(subshapes).
    """
    if stated is actual:
        return True
    pairs = zip(stated.subshapes(), actual.subshapes(), strict=False)
    return len(stated.subshapes()) == len(actual.subshapes()) and all(
        one_index == other_index
        and one.element_type is other.element_type
        and one.is_buffer == other.is_buffer
        and one.rank == other.rank
        and all(
            a == b or min(a, b) < 0 for a, b in zip(one.dimensions, other.dimensions, strict=True)
        )
        for (one_index, one), (other_index, other) in pairs
    )


_WITHOUT_LAYOUT: dict[Shape, Shape] = {}


def without_layout(shape: Shape) -> Shape:
    """`shape` with default layouts throughout; a value to compare shapes by, layouts aside."""
    bare = _WITHOUT_LAYOUT.get(shape)
    if bare is None:
        stack = [shape]  # no deep recursion, and each distinct shape once
        while stack:
            part = stack[-1]
            new = [element for element in part.elements if element not in _WITHOUT_LAYOUT]
            if new:
                stack += new
                continue
            stack.pop()
            if part.is_tuple:
                result = tuple_shape(_WITHOUT_LAYOUT[element] for element in part.elements)
            else:
                result = array_shape(
                    part.type_name, part.dimensions, part.dynamic, None, part.is_buffer
                )
            _WITHOUT_LAYOUT[part] = result
        bare = _WITHOUT_LAYOUT[shape]
    return bare


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
            out.append(_format_array(item, layout))
    return "".join(out)


def _format_array(shape: Shape, layout: bool) -> str:
    dimensions = ",".join(
        "?" if size < 0 else f"<={size}" if dynamic else str(size)
        for size, dynamic in zip(shape.dimensions, shape.dynamic, strict=True)
    )
    text = f"{shape.type_name}[{dimensions}]"
    if layout and shape.is_array:
        text += shape.layout.text
    return f"b({text})" if shape.is_buffer else text


def parse_shape(text: str) -> Shape:
    """The shape written as `text`. Cached per distinct text.

    Raises ShapeError.
    """
    return SHAPES[text]


class _ShapesByText(dict[str, Shape]):
    def __missing__(self, text: str) -> Shape:
        shape, end = scan_shape(text, 0)
        if skip_trivia(text, end) != len(text):
            raise ShapeError(f"unexpected text after the shape in '{_shorten(text)}'")
        self[text] = shape
        return shape


SHAPES = _ShapesByText()
"""Shapes by their text; looking up a new text parses it (`parse_shape`, without the call)."""


_ARRAY = pattern(r"([a-z][a-z0-9]*)\s*\[([^\]{}()]*)\]")
_COMMENT = pattern(r"/\*(?:.*?\*/|(.*))", re.S)  # the group: one that is never closed
_DIMENSION = pattern(r"\s*(?:(<=)?\s*(-?\d{1,20})|(\?))\s*")
_NUMBER = r"-?\d{1,18}"
_BUFFER = pattern(r"b\s*\(\s*")
_LAYOUT_FOLLOWS = pattern(rf"[ \t\r\n]*\{{(?=[ \t\r\n]*(?:{_NUMBER}\b|:))")
_LAYOUT_ORDER = pattern(rf"\{{\s*((?:{_NUMBER}\s*(?:,\s*{_NUMBER}\s*)*)?)(:)?")
_TILE = r"\(\s*(?:(?:\*|\d{1,18}(?!\d))\s*(?:,\s*(?!\)))?)*\)"
_SPLIT = rf"\(\s*{_NUMBER}\s*:\s*{_NUMBER}\s*(?:,\s*{_NUMBER}\s*)*\)"
_LAYOUT_PART = pattern(
    rf"""\s*(?:
      (?P<levels>D\(\s*(?:[DCSH]\s*\+?\s*~?\s*(?:,\s*(?!\)))?)*\))
    | T\s*(?P<tiles>(?:{_TILE}\s*)+)
    | L\((?P<tail>0*[1-9]\d{{0,18}})\)
    | \#\((?P<index>\w+)\)
    | \*\((?P<pointer>\w+)\)
    | E\((?P<bits>{_NUMBER})\)
    | S\((?P<space>{_NUMBER})\)
    | SC\s*(?P<splits>(?:{_SPLIT}\s*)+)
    | M\((?P<dynamic>{_NUMBER})\)
    )""",
    re.X,
)
_PART_ORDER = ("levels", "tiles", "tail", "index", "pointer", "bits", "space", "splits", "dynamic")
_SIMPLE_LAYOUT = pattern(r"\{((?:\d{1,9},)*\d{1,9})\}")


def scan_shape(text: str, start: int) -> tuple[Shape, int]:
    """The shape that begins at `start` (white space and comments allowed), and where it ends.

    Raises ShapeError without a span: the caller knows the source.
    """
    opened: list[list[Shape]] = []
    position = start
    while True:
        position = skip_trivia(text, position)
        if text.startswith("(", position):
            opened.append([])
            position = skip_trivia(text, position + 1)
            if not text.startswith(")", position):
                continue
        else:
            shape, position = _scan_array(text, position)
            if not opened:
                return shape, position
            opened[-1].append(shape)
        while True:  # after an element: the next one, or the end of one or more tuples
            position = skip_trivia(text, position)
            if text.startswith(",", position):
                position += 1
                break
            if not text.startswith(")", position):
                raise ShapeError(
                    f"expected ',' or ')' in a tuple shape, found '{_near(text, position)}'"
                )
            position += 1
            shape = tuple_shape(opened.pop())
            if not opened:
                return shape, position
            opened[-1].append(shape)


def _scan_array(text: str, position: int) -> tuple[Shape, int]:
    buffer_ahead = _BUFFER.match(text, position)
    if buffer_ahead:
        if _BUFFER.match(text, buffer_ahead.end()):
            raise ShapeError("a buffer shape b(…) holds one array shape")
        inner, position = _scan_array(text, skip_trivia(text, buffer_ahead.end()))
        position = skip_trivia(text, position)
        if not inner.is_array or inner.is_buffer or not text.startswith(")", position):
            raise ShapeError("a buffer shape b(…) holds one array shape")
        buffer = array_shape(inner.type_name, inner.dimensions, inner.dynamic, inner.layout, True)
        return buffer, position + 1
    match = _ARRAY.match(text, position)
    if match is None:
        raise ShapeError(f"expected a shape, found '{_near(text, position)}'")
    name = match[1]
    if name not in ELEMENT_TYPES:
        raise ShapeError(f"unknown element type '{name}'", help=did_you_mean(name, ELEMENT_TYPES))
    dimensions, dynamic = _parse_dimensions(match[2])
    if dimensions and not ELEMENT_TYPES[name].bits:
        raise ShapeError(f"a {name} has no dimensions")
    position = match.end()
    layout = default_layout(len(dimensions))
    if text.startswith("{", position) or _LAYOUT_FOLLOWS.match(text, position):
        simple = _SIMPLE_LAYOUT.match(text, position)
        if simple:
            layout = _layout_in_order(tuple(map(int, simple[1].split(","))))
            position = simple.end()
        elif _LAYOUT_FOLLOWS.match(text, position):
            layout, position = _scan_layout(text, position)
        else:
            return array_shape(name, dimensions, dynamic), position
        if len(layout.minor_to_major) != len(dimensions):
            raise ShapeError(
                f"layout {layout.text or '{}'} has {len(layout.minor_to_major)} dimensions, "
                f"the shape {name}[{match[2]}] has {len(dimensions)}"
            )
    return array_shape(name, dimensions, dynamic, layout), position


def _parse_dimensions(text: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    if "/" in text:
        text = _COMMENT.sub(lambda comment: "" if comment[1] is None else "/", text)
    if not text.strip():
        return (), ()
    sizes: list[int] = []
    dynamic: list[bool] = []
    for part in text.split(","):
        match = _DIMENSION.fullmatch(part)
        if match is None:
            raise ShapeError(f"expected a dimension size, found '{_shorten(part.strip())}'")
        if match[3]:
            sizes.append(-1)
        else:
            size = int(match[2])
            if size < 0 or size >= 1 << 63:
                raise ShapeError(f"dimension size {match[2]} is out of range")
            sizes.append(size)
        dynamic.append(bool(match[1] or match[3]))
    return tuple(sizes), tuple(dynamic)


def _scan_layout(text: str, position: int) -> tuple[Layout, int]:
    position = skip_trivia(text, position)
    head = _LAYOUT_ORDER.match(text, position)
    assert head is not None
    order = tuple(int(d) for d in head[1].replace(" ", "").split(",") if d.strip())
    position = head.end()
    found: dict[str, str] = {}
    last = -1
    while head[2]:
        part = _LAYOUT_PART.match(text, position)
        if part is None:
            break
        name = part.lastgroup
        assert name is not None
        if _PART_ORDER.index(name) <= last:
            raise ShapeError(f"layout parts out of order at '{_near(text, position)}'")
        last = _PART_ORDER.index(name)
        found[name] = part[name]
        position = part.end()
    position = skip_trivia(text, position)
    if not text.startswith("}", position):
        raise ShapeError(f"expected the layout to end, found '{_near(text, position)}'")
    for name in ("index", "pointer"):
        if found.get(name, "u32") not in ELEMENT_TYPES:
            raise ShapeError(f"unknown element type '{found[name]}' in a layout")
    layout = Layout(
        order,
        tiles=tuple(
            re.sub(r"\s", "", t) for t in re.findall(r"\([^()]*\)", found.get("tiles", ""))
        ),
        tail_padding=int(found.get("tail", 1)),
        index_type=found.get("index", ""),
        pointer_type=found.get("pointer", ""),
        element_bits=int(found.get("bits", 0)),
        memory_space=int(found.get("space", 0)),
        splits=re.sub(r"\s", "", found.get("splits", "")),
        dynamic_metadata_bytes=int(found.get("dynamic", 0)),
    )
    return layout, position + 1


def _near(text: str, position: int) -> str:
    return _shorten(text[position : position + 24].split("\n")[0]) or "end of text"


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
