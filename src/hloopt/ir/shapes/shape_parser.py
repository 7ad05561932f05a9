"""Reading the text of shapes: `f32[2,<=3]{1,0:T(8,128)S(1)}`, `(s32[], b(f32[2]))`."""

from __future__ import annotations

import re

from hloopt.diagnostics import ShapeError, did_you_mean
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.layout import Layout, default_layout, layout_in_order
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.ir.trivia import skip_trivia
from hloopt.patterns import pattern


def parse_shape(text: str) -> Shape:
    """The shape written as `text`. Cached per distinct text.

    Raises ShapeError.
    """
    return SHAPES[text]


class _ShapesByText(dict[str, Shape]):
    def __missing__(self, text: str) -> Shape:
        shape = _printed_array(text) if text[-1:] != ")" else _printed_tuple(text)
        if shape is None:
            shape, end = scan_shape(text, 0)
            if skip_trivia(text, end) != len(text):
                raise ShapeError(f"unexpected text after the shape in '{_shorten(text)}'")
        self[text] = shape
        return shape


SHAPES = _ShapesByText()
"""Shapes by their text; looking up a new text parses it (`parse_shape`, without the call)."""


_PRINTED_ARRAY = pattern(r"([a-z]\w*)\[([\d,]*)\](?:\{((?:\d{1,9},)*\d{1,9})\})?")
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


def _printed_array(text: str) -> Shape | None:
    """The array XLA prints as `text`, with static sizes and an order of dimensions at most.

    None for all other text; `scan_shape` reads that.
    """
    match = _PRINTED_ARRAY.fullmatch(text)
    if match is None:
        return None
    name, sizes, order = match.groups()
    kind = ELEMENT_TYPES.get(name)
    if kind is None or (sizes and not kind.bits):
        return None
    try:
        dimensions = tuple(map(int, sizes.split(","))) if sizes else ()
    except ValueError:  # a comma without a number, or thousands of digits
        return None
    layout = layout_in_order(tuple(map(int, order.split(",")))) if order else None
    if dimensions and max(dimensions) >= 1 << 63:
        return None
    if layout is not None and len(layout.minor_to_major) != len(dimensions):
        return None
    shape = array_shape(name, dimensions, (), layout)
    if _is_canonical(sizes, order, len(dimensions)):
        shape.keep_text(text)
    return shape


def _is_canonical(sizes: str, order: str | None, rank: int) -> bool:
    """Whether sizes and order of dimensions are as XLA prints them: no zero leads a number."""
    if not rank:
        return True
    has_short_order = order is not None and len(order) == 2 * rank - 1
    return has_short_order and sizes[0] != "0" and ",0" not in sizes


def split_list(text: str) -> list[str]:
    """The parts of `a, b, …`, without the `/*index=5*/` that XLA prints before each fifth one."""
    parts = text.split(", ")
    if "/*index=" in text:
        for i in range(5, len(parts), 5):
            parts[i] = parts[i].removeprefix(f"/*index={i}*/")
    return parts


def _printed_tuple(text: str) -> Shape | None:
    """The tuple of arrays XLA prints as `text`; None for all other text."""
    if text[0] != "(" or text.count("(") > 1:
        return None
    elements = split_list(text[1:-1])
    if any("/" in element for element in elements):
        return None
    try:
        return tuple_shape(map(SHAPES.__getitem__, elements)) if elements[0] else None
    except ShapeError:
        return None


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
    printed = _PRINTED_ARRAY.match(text, position)
    if printed and text[printed.end() : printed.end() + 1] in (",", ")", "}", "-", ""):
        shape = _printed_array(printed[0])
        if shape is not None:
            return shape, printed.end()
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
            layout = layout_in_order(tuple(map(int, simple[1].split(","))))
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
