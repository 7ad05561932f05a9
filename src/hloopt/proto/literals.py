"""Literals as messages: the text of a constant, and the values in a LiteralProto.

A message has the values in the order of its shape's layout, the text in row-major order. Types of
less than 8 bits take a byte each. Floating-point values are handled as bits, NaNs included.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.literals.literal import ELIDED, canonical_literal, nest_values, zero_bits_text
from hloopt.ir.literals.literal_bits import float_code, float_texts
from hloopt.ir.shapes.element_type import ElementType
from hloopt.ir.shapes.shape import Shape, without_packing
from hloopt.patterns import pattern
from hloopt.proto.shapes import ShapeReader, write_shape

_EMPTY_LIMIT = 1 << 20  # rows of an array without elements that are spelled out
_VALUE = pattern(r"\((?:[^()]|\([^()]*\))*\)|-?nan\(0x[0-9a-f]+\)|[^\s{},()]+")
_COMMENT = pattern(r"/\*.*?\*/")


def _field(element: ElementType) -> str:
    return f"{element.name}s"


def _is_packed(element: ElementType) -> bool:
    """Whether the values stand in a `bytes` field, little-endian, not in a repeated field."""
    return element.bits <= 16 and (element.is_integral or element.is_floating)


# -- reading --------------------------------------------------------------------------------------


def read_literal(proto: Any, shape: Shape, shapes: ShapeReader) -> str:
    """The text between the parentheses of a constant of `shape`. Raises HloSyntaxError."""
    if shape.is_tuple:
        if len(proto.tuple_literals) != len(shape.elements):
            raise HloSyntaxError(
                f"a tuple literal has {len(proto.tuple_literals)} elements, "
                f"its shape {len(shape.elements)}"
            )
        inner = [
            read_literal(literal, element, shapes)
            for literal, element in zip(proto.tuple_literals, shape.elements, strict=True)
        ]
        return f"( {', '.join(inner)} )" if inner else "()"
    element = shape.element_type
    if element is None or not shape.is_array:
        raise HloSyntaxError(f"a {shape.type_name} has no literal")
    found, texts = _read_values(proto, element)
    count = shape.element_count()
    if found != count:
        raise HloSyntaxError(f"the literal has {found} values, {shape.text} has {count}")
    if not shape.dimensions:
        (text,) = texts
        return {"1": "true", "0": "false"}[text] if element.kind == "pred" else text
    if not count and prod(size or 1 for size in shape.dimensions) > _EMPTY_LIMIT:
        raise HloSyntaxError(f"a literal of {shape.text} is too large to write")
    own = shapes.read(proto.shape) if proto.HasField("shape") else shape
    order = own.layout.minor_to_major if own.rank == shape.rank else shape.layout.minor_to_major
    if not _is_row_major(order):
        texts = _reordered(list(texts), _places(shape.dimensions, order))
    return nest_values(texts, shape.dimensions)


def _is_row_major(order: tuple[int, ...]) -> bool:
    return all(a > b for a, b in pairwise(order))


def _places(dimensions: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    """For each element in row-major order its place among those in the order of a layout."""
    if sorted(order) != list(range(len(dimensions))):
        raise HloSyntaxError(f"a literal has the layout {{{','.join(map(str, order))}}}")
    strides = [prod(dimensions[d] for d in order[: order.index(i)]) for i in range(len(order))]
    ranges = [
        range(0, size * stride, stride) for size, stride in zip(dimensions, strides, strict=True)
    ]
    return [sum(index) for index in product(*ranges)]


def _reordered(values: Sequence[Any], places: list[int]) -> list[Any]:
    return [values[place] for place in places]


def _read_values(proto: Any, element: ElementType) -> tuple[int, Iterable[str]]:
    """The number of values, and their texts in the order of the message, made as they are asked
    for: there may be many million."""
    values = getattr(proto, _field(element))
    if element.kind == "pred":
        return len(values), ("1" if value else "0" for value in values)
    if element.kind == "complex":
        if len(values) % 2:
            raise HloSyntaxError(f"a literal has {len(values)} parts of complex numbers")
        numbers = float_texts(values, "f32" if element.bits == 64 else "f64")
        return len(values) // 2, (f"({re}, {next(numbers)})" for re in numbers)
    codes = _codes(values, element.bytes)
    if element.is_floating:
        return len(codes), float_texts(codes, element.name)
    if _is_packed(element):
        signed = element.kind == "signed"
        half = 1 << (element.bits - 1)
        mask = (1 << element.bits) - 1
        low = (code & mask for code in codes)
        return len(codes), (str((code ^ half) - half if signed else code) for code in low)
    return len(values), map(str, values)


def _codes(values: Any, size: int) -> Sequence[int]:
    """The bits of the values of a field, which is packed into bytes for small types."""
    if not isinstance(values, bytes):
        return values  # type: ignore[no-any-return]  # a repeated field of integers
    if len(values) % size:
        raise HloSyntaxError(f"a literal has {len(values)} bytes for values of {size}")
    return values if size == 1 else struct.unpack(f"<{len(values) // size}H", values)


# -- writing --------------------------------------------------------------------------------------


def write_literal(text: str, shape: Shape, proto: Any) -> None:
    """Fill the LiteralProto `proto` from the text of a constant. Raises HloSyntaxError."""
    _write(canonical_literal(text, shape), shape, proto)


def _write(canonical: str, shape: Shape, proto: Any) -> None:
    write_shape(without_packing(shape), proto.shape)
    if shape.is_tuple:
        for part, inner in zip(_tuple_parts(canonical), shape.elements, strict=True):
            _write(part, inner, proto.tuple_literals.add())
        return
    element = shape.element_type
    assert element is not None
    if ELIDED in canonical:
        raise HloSyntaxError("an element of a tuple literal is elided")
    tokens = _VALUE.findall(_COMMENT.sub("", canonical))
    count = shape.element_count()
    if len(tokens) == 1 and count > 1:  # one scalar stands for itself and zeros behind it
        tokens += [zero_bits_text(element)] * (count - 1)
    order = shape.layout.minor_to_major
    if not _is_row_major(order):
        places = _places(shape.dimensions, order)
        moved = [""] * count
        for token, place in zip(tokens, places, strict=True):
            moved[place] = token
        tokens = moved
    _write_values(tokens, element, proto)


def _tuple_parts(text: str) -> list[str]:
    """The elements of a canonical tuple literal."""
    parts: list[str] = []
    depth = start = 0
    for position, character in enumerate(text):
        if character in "({":
            depth += 1
            start = position + 1 if depth == 1 else start
        elif character in ")}":
            depth -= 1
        if (character == "," and depth == 1) or (character == ")" and depth == 0):
            parts.append(text[start:position].strip())
            start = position + 1
    return [part for part in parts if part]


def _write_values(tokens: list[str], element: ElementType, proto: Any) -> None:
    if element.kind == "pred":
        proto.preds.extend(token in ("1", "true") for token in tokens)
        return
    if element.kind == "complex":
        part = "f32" if element.bits == 64 else "f64"
        halves = [half.strip() for token in tokens for half in token[1:-1].split(",")]
        getattr(proto, _field(element)).extend(map(float_code(part), halves))
        return
    if element.is_floating:
        codes = list(map(float_code(element.name), tokens))
    else:
        codes = list(map(int, tokens))
    if _is_packed(element):
        mask = (1 << element.bits) - 1
        packed = struct.pack(
            f"<{len(codes)}{'B' if element.bytes == 1 else 'H'}", *[code & mask for code in codes]
        )
        setattr(proto, _field(element), packed)
    else:
        getattr(proto, _field(element)).extend(codes)
