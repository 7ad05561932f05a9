"""Attribute text whose values are shapes or literals with their shapes, as XLA prints it.

As in `attribute_format`: text to text; malformed text raises HloSyntaxError.
"""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.ir.attributes.formats import braces
from hloopt.ir.attributes.text import scan_literal
from hloopt.ir.attributes.values.tokens import malformed, memoized
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.shapes.shape import Shape, format_shape
from hloopt.ir.shapes.shape_parser import parse_shape, scan_shape
from hloopt.ir.trivia import skip_trivia


@memoized
def shape(text: str) -> str:
    """A shape with its layout."""
    return format_shape(parse_shape(text))


@memoized
def shapes(text: str) -> str:
    """`{f32[4]{0}, f32[]}`."""
    return braces(map(format_shape, parse_shapes(text)), ", ")


@memoized
def parse_shapes(text: str) -> tuple[Shape, ...]:
    """The shapes in `{f32[4]{0}, f32[]}`."""
    if not (text.startswith("{") and text.endswith("}")):
        raise malformed("shapes {shape, …}", text)
    found: list[Shape] = []
    end = len(text) - 1
    position = skip_trivia(text, 1)
    while position < end:
        if found:
            if text[position] != ",":
                raise malformed("shapes {shape, …}", text)
            position += 1
        parsed, position = scan_shape(text, position)
        found.append(parsed)
        position = skip_trivia(text, position)
    return tuple(found)


@memoized
def literal(text: str) -> str:
    """`s32[2]{0} {1, 2}`, or a tuple of such `( s32[] 1, pred[] true )`."""
    return _literal(text, None)


@memoized
def elided_literal(text: str) -> str:
    """As `literal`, with the values of large arrays left out."""
    return _literal(text, 10)


def _literal(text: str, limit: int | None) -> str:
    return "".join(
        _TUPLE_MARKS[part]
        if isinstance(part, str)
        else f"{format_shape(part[0])} {canonical_literal(part[1], part[0], limit)}"
        for part in typed_literal_parts(text)
    )


_TUPLE_MARKS = {"(": "( ", ",": ", ", ")": " )"}


def typed_literal_parts(text: str) -> Iterator[str | tuple[Shape, str]]:
    """The arrays of `( s32[] 1, pred[] true )`, shape and values, and the marks between them."""
    depth = 0
    is_whole = False
    position = skip_trivia(text, 0)
    while position < len(text) and not is_whole:
        mark = text[position]
        if mark == "(" or (depth and mark in _TUPLE_MARKS):
            yield mark
            depth += (mark == "(") - (mark == ")")
            position += 1
        else:
            parsed, start = scan_shape(text, position)
            start = skip_trivia(text, start)
            position = scan_literal(text, start)
            yield parsed, text[start:position]
        position = skip_trivia(text, position)
        is_whole = not depth
    if position < len(text) or not is_whole:
        raise malformed("a shape and a literal", text)
