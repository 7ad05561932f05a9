"""Literals: the text between a constant's parentheses, checked and written as XLA writes it."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

from hloopt.diagnostics import LiteralError
from hloopt.ir.attribute_text import scan_literal
from hloopt.ir.element_type import ElementType
from hloopt.ir.plain_literals import PLAIN_VALUE, is_plain
from hloopt.ir.shape import Shape
from hloopt.ir.trivia import skip_trivia
from hloopt.patterns import pattern

ELIDED = "{...}"
"""What stands for the elements of a constant that was too large to print."""

_TOKEN = pattern(
    r"(?P<skip>[\s,]+|/\*.*?\*/|//[^\r\n]*)"
    r"|(?P<open>\{)|(?P<close>\})|(?P<dots>\.\.\.)"
    r"|(?P<complex>\([^()]*(?:\(0x[0-9a-fA-F]+\)[^()]*)*\))"
    r"|(?P<scalar>-?nan(?:\(0x[0-9a-fA-F]+\))?|-?inf|true|false|(?:-?\d+\.?\d*|-\.\d+)(?:[eE][+-]?\d+)?)",
    re.S,
)
_INTEGER = pattern(r"-?\d+")
_DECIMAL = pattern(r"(?:-?\d+\.\d*|-?\d+(?=[eE])|-\.\d+)(?:[eE][+-]?\d+)?|-?inf")
_NAN = pattern(r"(-?)nan(?:\((0x[0-9a-fA-F]+)\))?")

_CANONICAL: dict[tuple[str, Shape, int | None], str] = {}
_REMEMBERED = 200  # characters; longer literals are not worth a cache entry


def canonical_literal(text: str, shape: Shape, limit: int | None = None) -> str:
    """The literal `text` of a `shape` as XLA prints it.

    With a `limit`, arrays of more elements, and all tuples, become `{...}`. O(length of the
    text). Raises LiteralError for what is no literal of this shape.
    """
    key = (text, shape, limit)
    if len(text) > _REMEMBERED:
        return _canonical(*key)
    found = _CANONICAL.get(key)
    if found is None:
        found = _CANONICAL[key] = _canonical(*key)
    return found


def check_literal(text: str, shape: Shape) -> None:
    """Raise HloSyntaxError where `text` is no literal of this shape. O(length of the text).

    A long one in the form XLA prints takes a tenth of the time of any other.
    """
    if len(text) <= _REMEMBERED or not is_plain(text, shape):
        canonical_literal(text, shape, 0)


def _canonical(text: str, shape: Shape, limit: int | None) -> str:
    if shape.is_tuple:
        return _canonical_tuple(text.strip(), shape, limit)
    if shape.element_type is None or not shape.is_array:
        raise LiteralError(f"a {shape.type_name} has no literal")
    format_value = _formatter(shape.element_type, is_array=bool(shape.dimensions))
    if shape.dimensions and not text.lstrip().startswith(("{", "/", "(")):
        return _from_scalar(text.strip(), shape, limit, format_value)
    plain = len(text) > _REMEMBERED and is_plain(text, shape)
    if plain and limit is not None and shape.element_count() > limit:
        return ELIDED
    values = PLAIN_VALUE.findall(text) if plain else _values(text, shape)
    if values is None:
        if shape.element_count():
            return ELIDED
        values = []
    if not shape.dimensions:
        return format_value(values[0])
    formatted = {value: format_value(value) for value in set(values)}
    texts = [formatted[value] for value in values]
    if limit is not None and len(texts) > limit:
        return ELIDED
    return nest_values(texts, shape.dimensions)


_LARGEST_SPELLED = 1 << 20  # elements; a larger array given as one scalar keeps that form


def _from_scalar(
    token: str, shape: Shape, limit: int | None, format_value: Callable[[str], str]
) -> str:
    """An array given as one scalar: XLA reads it as the first element, and zeros behind it."""
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
    return nest_values([value] + ["0"] * (count - 1), shape.dimensions)


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


def nest_values(texts: list[str], dimensions: tuple[int, ...]) -> str:
    """Values in row-major order in nested braces, blanks and index comments as XLA sets them."""
    rows = texts
    rank = len(dimensions)
    for axis in range(rank - 1, -1, -1):
        size = dimensions[axis]
        groups = math.prod(dimensions[:axis])
        if axis == rank - 1 and rank > 1 and size < 2:
            rows = [f"{{{row}}}" for row in rows] if size else ["{}"] * groups
            continue
        grouped = [rows[i * size : (i + 1) * size] for i in range(groups)]
        if axis == rank - 1:
            opening, closing = ("{", "}") if rank == 1 else ("{ ", " }")
            rows = [f"{opening}{', '.join(group)}{closing}" for group in grouped]
        else:
            rows = [f"{{ {', '.join(_commented(group, axis, rank))} }}" for group in grouped]
    return rows[0] if rows else "{}"


def _commented(group: list[str], axis: int, rank: int) -> list[str]:
    if rank < 4 or axis >= rank - 2:
        return group
    return [_with_comment(text, axis, i) for i, text in enumerate(group)]


def _with_comment(text: str, axis: int, number: int) -> str:
    inner = text[1:].replace("  }", " }") if text == "{  }" else text[1:]
    return f"{{ /*i{axis}={number}*/{inner}"


# -- scalars --------------------------------------------------------------------------------


def _formatter(element: ElementType, *, is_array: bool) -> Callable[[str], str]:
    if element.kind == "pred":
        return _format_pred_element if is_array else _format_pred
    if element.is_integral:
        return lambda token: _format_integer(token, element)
    if element.kind == "complex":
        return lambda token: _format_complex(token, element)
    return lambda token: float_text(token, element.name)


def _truth(token: str) -> bool:
    if token in ("true", "false"):
        return token == "true"
    return _raw_integer(token, "expected true, false or an integer") != 0


def _raw_integer(token: str, expected: str) -> int:
    """The value of an integer token: 64 bits, which XLA takes as signed."""
    if _INTEGER.fullmatch(token) is None:
        raise LiteralError(f"{expected}, found '{token[:40]}'")
    if len(token.lstrip("-0")) > _LONGEST or not -(1 << 63) <= (value := int(token)) < 1 << 64:
        raise LiteralError(f"{token[:40]} does not fit into 64 bits")
    return value - (1 << 64) if value >= 1 << 63 else value


_LONGEST = 20  # digits of 64 bits


def _format_pred(token: str) -> str:
    return "true" if _truth(token) else "false"


def _format_pred_element(token: str) -> str:
    return "1" if _truth(token) else "0"


def _format_integer(token: str, element: ElementType) -> str:
    value = _raw_integer(token, f"expected an integer of type {element.name}")
    signed = element.kind == "signed"
    low = -(1 << (element.bits - 1)) if signed else 0
    if element.bits == 64:
        value = (value - low) % (1 << 64) + low
    if not low <= value < low + (1 << element.bits):
        raise LiteralError(f"{token} is out of the range of {element.name}")
    return str(value)


_COMMENT = pattern(r"/\*.*?\*/|//[^\r\n]*", re.S)
_LARGEST_F32 = 3.4028234663852886e38


def _format_complex(token: str, element: ElementType) -> str:
    parts = _COMMENT.sub(" ", token[1:-1]).split(",")
    if not token.startswith("(") or len(parts) != 2:
        raise LiteralError(f"expected a complex number (re, im), found '{token}'")
    part = "f32" if element.bits == 64 else "f64"
    real, imaginary = (float_text(p.strip(), part) for p in parts)
    if part == "f32" and any(_is_too_large_for_f32(p.strip()) for p in parts):
        raise LiteralError(f"a part of {token} is out of the range of f32")
    if "nan" in real:
        imaginary = real  # as XLA reads it
    elif "nan" in imaginary and part == "f32":
        imaginary = _NAN.sub(r"\1nan", imaginary)
    return f"({real}, {imaginary})"


def _is_too_large_for_f32(token: str) -> bool:
    """Whether XLA refuses a part of a complex number: it looks before rounding."""
    return "n" not in token and abs(float(token)) > _LARGEST_F32


_SIGNIFICAND_BITS = {
    **{"bf16": 8, "f16": 11, "f8e5m2": 3, "f8e5m2fnuz": 3, "f8e4m3": 4, "f8e4m3fn": 4},
    **{"f8e4m3fnuz": 4, "f8e4m3b11fnuz": 4, "f8e3m4": 5, "f4e2m1fn": 2, "f6e2m3fn": 4},
    **{"f6e3m2fn": 3, "f8e8m0fnu": 1},
}
_NO_INFINITY = frozenset(
    (
        *("f8e4m3fn", "f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3b11fnuz", "f8e8m0fnu"),
        *("f4e2m1fn", "f6e2m3fn", "f6e3m2fn"),
    )
)
_SATURATING = frozenset(("f4e2m1fn", "f6e2m3fn", "f6e3m2fn"))


def float_text(token: str, name: str) -> str:
    """A number as XLA prints it as a value of the type `name`. Raises HloSyntaxError."""
    nan = _NAN.fullmatch(token)
    if nan:
        return _format_nan(nan[1], nan[2], name)
    if _INTEGER.fullmatch(token):
        value = float(_raw_integer(token, ""))
    elif _DECIMAL.fullmatch(token):
        value = float(token)
    else:
        raise LiteralError(f"expected a number of type {name}, found '{token}'")
    if math.isinf(value) and "inf" not in token:
        raise LiteralError(f"{token} is out of the range of {name}")
    if name == "f64":
        return _shortest(value, 15, 17, lambda text: float(text) == value)
    if name == "f32":
        rounded = _to_f32(value, token)
        return _shortest(rounded, 6, 9, lambda text: _to_f32(float(text), text) == rounded)
    return _format_small_float(value, token, name)


_PAYLOAD_BITS = {
    **{"f64": 52, "f32": 23, "f16": 10, "bf16": 7, "f8e5m2": 2, "f8e4m3": 3, "f8e3m4": 4},
}
_QUIET = 1 << 51
"""The payload of a plain `nan` in the text, whatever the type."""


def _format_nan(sign: str, payload: str | None, name: str) -> str:
    if payload is not None and int(payload, 16) != _QUIET:
        bits = _PAYLOAD_BITS.get(name, 0)
        if not 0 < int(payload, 16) < 1 << bits:
            raise LiteralError(f"{name} has no NaN with payload {payload}")
        if int(payload, 16) != 1 << (bits - 1):
            return f"{sign}nan({payload.lower()})"
    if name in _SATURATING:
        return "0" if sign else "-0"  # no NaN: this is what XLA makes of it
    if name == "f8e8m0fnu":
        return "nan"
    return "-nan" if name.endswith("fnuz") else f"{sign}nan"


def _shortest(value: float, few: int, many: int, reads_back: Callable[[str], bool]) -> str:
    text = f"{value:.{few}g}"
    return text if math.isinf(value) or reads_back(text) else f"{value:.{many}g}"


def _to_f32(value: float, token: str) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        raise LiteralError(f"{token} is out of the range of f32") from None


def _format_small_float(value: float, token: str, name: str) -> str:
    if name == "f8e8m0fnu" and 0 < value < _SMALLEST_F8E8M0FNU:
        value = _SMALLEST_F8E8M0FNU
    rounded = _ROUNDING.get(name, _round_with_ml_dtypes)(value, name)
    if math.isfinite(value) and not math.isfinite(rounded):
        raise LiteralError(f"{token} is out of the range of {name}")
    if math.isnan(rounded) or (math.isinf(value) and name in _NO_INFINITY - _SATURATING):
        return _format_nan("-" if value < 0 else "", None, name)
    digits = math.ceil(1 + _SIGNIFICAND_BITS[name] * math.log10(2))
    return f"{rounded:.{digits}g}"


_SMALLEST_F8E8M0FNU = 2.0**-127


def _round_bf16(value: float, _name: str) -> float:
    """To nearest even, by way of f32. Without ml_dtypes, whose import takes 0.1 s."""
    try:
        bits = int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        return math.copysign(math.inf, value)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])


def _round_f16(value: float, _name: str) -> float:
    try:
        return float(struct.unpack("<e", struct.pack("<e", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


_ROUNDING: dict[str, Callable[[float, str], float]] = {"bf16": _round_bf16, "f16": _round_f16}


def _round_with_ml_dtypes(value: float, name: str) -> float:
    import numpy as np

    with np.errstate(all="ignore"):
        return float(np.asarray(value, np.float64).astype(small_float_type(name)))


def small_float_type(name: str) -> type[Any]:
    """The NumPy type of a floating-point type of at most 8 bits."""
    import ml_dtypes

    names = {"f4e2m1fn": "float4_e2m1fn", "f6e2m3fn": "float6_e2m3fn", "f6e3m2fn": "float6_e3m2fn"}
    found: type[Any] = getattr(ml_dtypes, names.get(name) or f"float8_{name[2:]}")
    return found
