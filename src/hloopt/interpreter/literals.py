"""The literals of constants as values, and values as literals."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.values import Array, Value, dtype_of_shape
from hloopt.ir.attributes.text import scan_literal
from hloopt.ir.literals.literal import ELIDED, canonical_literal, nest_values
from hloopt.ir.literals.literal_bits import float_texts
from hloopt.ir.shapes.element_type import ElementType
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.trivia import skip_trivia

_NUMBER = r"[^\s(){},]+(?:\(0x[0-9a-f]+\))?"
VALUES_LEFT_OUT = "its values were left out when the module was printed"
_SCALAR = re.compile(rf"\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)|{_NUMBER}", re.A)
_COMMENT = re.compile(r"/\*.*?\*/", re.S)
_NAN = re.compile(r"(-?)nan\((0x[0-9a-f]+)\)", re.A)


def literal_value(text: str, shape: Shape) -> Value:
    """The value of a constant. O(length of the text).

    Raises LiteralError for a malformed literal, ShapeError for tuples that are nested too deeply,
    RunError where values were left out (`{...}`).
    """
    shape.check_depth()
    return _value(canonical_literal(text, shape), shape)


def _value(text: str, shape: Shape) -> Value:
    if shape.is_tuple:
        elements: list[Value] = []
        position = text.index("(") + 1
        for element in shape.elements:
            position = skip_trivia(text, position)
            end = scan_literal(text, position)
            elements.append(_value(text[position:end], element))
            position = skip_trivia(text, end) + 1
        return tuple(elements)
    return _array(_tokens(text, shape), shape).reshape(shape.dimensions)


def array_tokens(text: str, shape: Shape) -> list[str]:
    """The elements of an array's literal as canonical text, row by row. Raises as above."""
    return _tokens(canonical_literal(text, shape), shape)


def _tokens(text: str, shape: Shape) -> list[str]:
    if ELIDED in text:
        raise RunError(
            VALUES_LEFT_OUT,
            help="dump with --xla_dump_large_constants; `hloopt run --stand-ins` makes them up",
            code="HLO502",
        )
    tokens: list[str] = _SCALAR.findall(_COMMENT.sub("", text))
    if len(tokens) == 1 != shape.element_count():  # the first element; zeros behind it
        tokens += ["0"] * (shape.element_count() - 1)
    return tokens


def _array(tokens: list[str], shape: Shape) -> Array:
    dtype = dtype_of_shape(shape)
    assert shape.element_type is not None
    kind = shape.element_type.kind
    if kind == "pred":
        return np.array([token in ("1", "true") for token in tokens], dtype)
    if kind in ("signed", "unsigned"):
        wide = np.int64 if kind == "signed" else np.uint64
        return np.array(list(map(int, tokens)), wide).astype(dtype)
    if kind == "complex":
        parts = [part.strip() for token in tokens for part in token[1:-1].split(",")]
        return _floats(parts, np.dtype(f"float{dtype.itemsize * 4}")).view(dtype)
    return _floats(tokens, dtype)


def _floats(tokens: list[str], dtype: np.dtype[Any]) -> Array:
    if any("nan(" in token for token in tokens):
        return np.array([_float_bits(token, dtype) for token in tokens], dtype)
    values = np.array(list(map(float, tokens)), np.float64)
    if dtype.name == "float8_e8m0fnu":  # powers of two, printed with two digits
        with np.errstate(divide="ignore"):
            values = 2 ** np.rint(np.log2(values))
    return values.astype(dtype)


def _float_bits(token: str, dtype: np.dtype[np.generic]) -> object:
    match = _NAN.fullmatch(token)
    if match is None:
        return np.array(float(token)).astype(dtype)[()]
    bits = np.dtype(f"uint{dtype.itemsize * 8}")
    quiet = int(np.array(np.inf).astype(dtype).view(bits)) | int(match[2], 16)
    sign = 1 << (dtype.itemsize * 8 - 1) if match[1] else 0
    return np.array(quiet | sign, bits).view(dtype)[()]


def literal_text(value: Value, shape: Shape) -> str:
    """The literal that is read as `value`, bit for bit. O(elements).

    `shape` is an array, dynamic dimensions aside, or a tuple of arrays. The text of a complex
    number has no room for all NaNs: see `is_writable`.
    """
    if shape.is_tuple:
        texts = map(literal_text, value, shape.elements)
        return f"( {', '.join(texts)} )" if shape.elements else "()"
    assert shape.element_type is not None
    tokens = _texts(value.reshape(-1), shape.element_type)
    if shape.dimensions:
        return nest_values(tokens, shape.dimensions)
    return {"1": "true", "0": "false"}[tokens[0]] if shape.type_name == "pred" else tokens[0]


def is_writable(value: Value) -> bool:
    """Whether `literal_text` keeps all there is to an array: complex NaNs get lost."""
    return value.dtype.kind != "c" or not np.isnan(value).any()


def _texts(values: Array, element: ElementType) -> list[str]:
    """The elements of an array of rank 1 as text."""
    if element.kind == "pred":
        return ["1" if value else "0" for value in values.tolist()]
    if element.is_integral:
        wide = np.int64 if element.kind == "signed" else np.uint64
        return list(map(str, values.astype(wide).tolist()))
    if element.kind == "complex":
        part = "f32" if element.bits == 64 else "f64"
        parts = np.ascontiguousarray(values).view(f"u{element.bytes // 2}").tolist()
        numbers = float_texts(parts, part)
        return [f"({re}, {next(numbers)})" for re in numbers]
    codes = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").tolist()
    return list(float_texts(codes, element.name))
