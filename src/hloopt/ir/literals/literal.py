"""Literals: the text between a constant's parentheses, checked and written as XLA writes it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from hloopt.diagnostics import LiteralError
from hloopt.ir.attributes.text import scan_literal
from hloopt.ir.literals.literal_values import SMALLEST_SCALE, value_formatter
from hloopt.ir.literals.plain_literals import is_plain, is_plain_scalar, plain_values
from hloopt.ir.shapes.element_type import ElementType
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.trivia import skip_trivia
from hloopt.patterns import pattern

ELIDED = "{...}"
"""The text for the elements of a constant that was too large to print."""

_TOKEN = pattern(
    r"(?P<skip>[\s,]+|/\*.*?\*/|//[^\r\n]*)"
    r"|(?P<open>\{)|(?P<close>\})|(?P<dots>\.\.\.)"
    r"|(?P<complex>\([^()]*(?:\(0x[0-9a-fA-F]+\)[^()]*)*\))"
    r"|(?P<scalar>-?nan(?:\(0x[0-9a-fA-F]+\))?|-?inf|true|false|(?:-?\d+\.?\d*|-\.\d+)(?:[eE][+-]?\d+)?)",
    re.S,
)

_CANONICAL: dict[tuple[str, Shape, int | None], str] = {}
_REMEMBERED = 200  # characters; longer literals are not worth a cache entry


def canonical_literal(text: str, shape: Shape, limit: int | None = None) -> str:
    """The literal `text` of a `shape` as XLA prints it.

    With a `limit`, arrays of more elements, and all tuples, become `{...}`. O(length of the
    text). Raises LiteralError for what is not a literal of this shape.
    """
    key = (text, shape, limit)
    if len(text) > _REMEMBERED:
        return _canonical(*key)
    found = _CANONICAL.get(key)
    if found is None:
        found = _CANONICAL[key] = _canonical(*key)
    return found


def check_literal(text: str, shape: Shape) -> None:
    """Raise HloSyntaxError where `text` is not a literal of this shape. O(length of the text).

    A long one in the form XLA prints takes a tenth of the time of any other.
    """
    if text == ELIDED and (shape.is_tuple or shape.dimensions):
        return
    if text == "{}" and shape.dimensions == (0,):
        return
    if not is_plain_scalar(text, shape) and not is_plain(text, shape):
        canonical_literal(text, shape, 0)


def _canonical(text: str, shape: Shape, limit: int | None) -> str:
    if shape.is_tuple:
        return _canonical_tuple(text.strip(), shape, limit)
    if shape.element_type is None or not shape.is_array:
        raise LiteralError(f"a {shape.type_name} has no literal")
    format_value = value_formatter(shape.element_type, is_array=bool(shape.dimensions))
    if shape.dimensions and not text.lstrip().startswith(("{", "/", "(")):
        return _from_scalar(text.strip(), shape, limit, format_value)
    if len(text) > _REMEMBERED and is_plain(text, shape):
        if limit is not None and shape.element_count() > limit:
            return ELIDED
        printed = _Printed(format_value)
        return nest_values(map(printed.__getitem__, plain_values(text)), shape.dimensions)
    values = _values(text, shape)
    if values is None:
        if shape.element_count():
            return ELIDED
        values = []
    if not shape.dimensions:
        return format_value(values[0])
    formatted = {value: format_value(value) for value in set(values)}  # refuses wrong values
    if limit is not None and len(values) > limit:
        return ELIDED
    return nest_values(map(formatted.__getitem__, values), shape.dimensions)


class _Printed(dict[str, str]):
    """Values as XLA prints them, by their texts; each distinct one is formatted once."""

    def __init__(self, format_value: Callable[[str], str]) -> None:
        super().__init__()
        self._format = format_value

    def __missing__(self, value: str) -> str:
        printed = self[value] = self._format(value)
        return printed


_LARGEST_SPELLED = 1 << 20  # elements; a larger array given as one scalar keeps that form


def _from_scalar(
    token: str, shape: Shape, limit: int | None, format_value: Callable[[str], str]
) -> str:
    """An array given as one scalar: XLA reads it as the first element, and bits 0 behind it."""
    if not _TOKEN.fullmatch(token):
        raise LiteralError(f"expected a literal of {shape.text}, found '{token[:40]}'")
    count = shape.element_count()
    value = format_value(token)
    if not count:
        raise LiteralError(f"expected {shape.rank} braces around the values of {shape.text}")
    if limit is not None and count > limit:
        return ELIDED
    if count > _LARGEST_SPELLED:
        return value
    assert shape.element_type is not None
    rest = zero_bits_text(shape.element_type)
    return nest_values([value] + [rest] * (count - 1), shape.dimensions)


def zero_bits_text(element: ElementType) -> str:
    """The value of this type whose bits are all 0, as XLA prints it."""
    if element.kind == "complex":
        return "(0, 0)"
    return SMALLEST_SCALE if element.name == "f8e8m0fnu" else "0"


_OPEN, _COMMA, _CLOSE = ("(", "( "), (",", ", "), (")", " )")


def _canonical_tuple(text: str, shape: Shape, limit: int | None) -> str:
    """A tuple literal: checked whole, then elided if there is a limit. No recursion."""
    out: list[str] = []
    position = 0
    expected: list[Shape | tuple[str, str]] = [shape]
    while expected:
        item = expected.pop()
        position = skip_trivia(text, position)
        if isinstance(item, tuple):
            mark, printed = item
            if not text.startswith(mark, position):
                raise LiteralError(
                    f"expected '{mark}' in a tuple literal, "
                    f"found '{text[position : position + 20] or 'its end'}'"
                )
            out.append(printed)
            position += 1
        elif not item.is_tuple:
            end = scan_literal(text, position)
            out.append(_canonical(text[position:end], item, limit))
            position = end
        elif text.startswith(ELIDED, position):
            out.append(ELIDED)
            position += len(ELIDED)
        elif not item.elements:
            expected += [(")", " )"), ("(", "( ")]
        else:
            expected.append(_CLOSE)
            for element in reversed(item.elements[1:]):
                expected += [element, _COMMA]
            expected += [item.elements[0], _OPEN]
    if position < len(text):
        raise LiteralError(f"unexpected '{text[position : position + 20]}' behind a tuple literal")
    return ELIDED if limit is not None else "".join(out)


def _values(text: str, shape: Shape) -> list[str] | None:
    """The scalars of an array literal as text, row by row; None where they are elided.

    Checks that the braces have the form of the shape.
    """
    dimensions = shape.dimensions
    rank = len(dimensions)
    values: list[str] = []
    counts = [0] * (rank + 1)  # elements seen so far in the open brace at each depth
    depth = 0
    is_elided = False
    for kind, token in _tokens(text):
        if kind == "open":
            if depth == rank or (depth and counts[depth] >= dimensions[depth - 1]):
                raise LiteralError(f"too many elements or braces for {shape.text}")
            counts[depth] += 1
            depth += 1
            counts[depth] = 0
        elif kind == "close":
            if depth == 0 or counts[depth] != dimensions[depth - 1]:
                raise LiteralError(
                    f"expected {dimensions[depth - 1] if depth else 0} elements in dimension "
                    f"{max(depth - 1, 0)} of {shape.text}, found {counts[depth]}"
                )
            depth -= 1
        elif kind == "dots":
            if depth != 1:
                raise LiteralError(f"'...' cannot stand here in a literal of {shape.text}")
            counts[depth] = dimensions[0]
            is_elided = True
        else:
            if depth != rank:
                raise LiteralError(f"expected {rank} braces around the values of {shape.text}")
            if rank and counts[depth] >= dimensions[depth - 1]:
                raise LiteralError(f"too many values for {shape.text}")
            counts[depth] += 1
            values.append(token)
    if is_elided and not depth and counts[0] == 1:
        return None
    if depth or len(values) != shape.element_count() or (rank and counts[0] != 1):
        raise LiteralError(
            f"the literal has {len(values)} values, {shape.text} has {shape.element_count()}"
        )
    return values


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise LiteralError(f"unexpected '{text[position : position + 20]}' in a literal")
        position = match.end()
        kind = match.lastgroup
        assert kind is not None
        if kind != "skip":
            yield kind, match[0]


def nest_values(texts: Iterable[str], dimensions: tuple[int, ...]) -> str:
    """Values in row-major order in nested braces, blanks and index comments as XLA sets them.

    Of the values one row is held at a time, for literals of many million elements.
    """
    rank = len(dimensions)
    rows: list[str] = []
    parts = iter(texts)
    for axis in range(rank - 1, -1, -1):
        size = dimensions[axis]
        groups = math.prod(dimensions[:axis])
        if axis == rank - 1 and rank > 1 and size < 2:
            rows = [f"{{{part}}}" for part in parts] if size else ["{}"] * groups
        elif axis == rank - 1:
            opening, closing = ("{", "}") if rank == 1 else ("{ ", " }")
            rows = [f"{opening}{', '.join(islice(parts, size))}{closing}" for _ in range(groups)]
        else:
            grouped = (list(islice(parts, size)) for _ in range(groups))
            rows = [f"{{ {', '.join(_commented(group, axis, rank))} }}" for group in grouped]
        parts = iter(rows)
    return rows[0] if rows else "{}"


def _commented(group: list[str], axis: int, rank: int) -> list[str]:
    if rank < 4 or axis >= rank - 2:
        return group
    return [_with_comment(text, axis, i) for i, text in enumerate(group)]


def _with_comment(text: str, axis: int, number: int) -> str:
    inner = text[1:].replace("  }", " }") if text == "{  }" else text[1:]
    return f"{{ /*i{axis}={number}*/{inner}"
