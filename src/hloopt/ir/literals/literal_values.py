"""The values in a literal: one number of an element type, checked and written as XLA writes it."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import Any

from hloopt.diagnostics import LiteralError
from hloopt.ir.shapes.element_type import ElementType
from hloopt.patterns import pattern

_INTEGER = pattern(r"-?\d+")
_DECIMAL = pattern(r"(?:-?\d+\.\d*|-?\d+(?=[eE])|-\.\d+)(?:[eE][+-]?\d+)?|-?inf")
_NAN = pattern(r"(-?)nan(?:\((0x[0-9a-fA-F]+)\))?")


def value_formatter(element: ElementType, *, is_array: bool) -> Callable[[str], str]:
    """The function that turns a token into the text of a value of this type; it raises
    LiteralError.

    XLA prints a pred as a word only where it stands alone.
    """
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


_MANTISSA_BITS = {
    **{"f64": 52, "f32": 23, "f16": 10, "bf16": 7, "f8e5m2": 2, "f8e4m3": 3, "f8e3m4": 4},
    **{"f8e5m2fnuz": 2, "f8e4m3fn": 3, "f8e4m3fnuz": 3, "f8e4m3b11fnuz": 3, "f8e8m0fnu": 0},
    **{"f6e3m2fn": 2, "f6e2m3fn": 3, "f4e2m1fn": 1},
}
_NO_INFINITY = frozenset(
    (
        *("f8e4m3fn", "f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3b11fnuz", "f8e8m0fnu"),
        *("f4e2m1fn", "f6e2m3fn", "f6e3m2fn"),
    )
)
_SATURATING = frozenset(("f4e2m1fn", "f6e2m3fn", "f6e3m2fn"))


def float_text(token: str, name: str) -> str:
    """A number as XLA prints it as a value of the type `name`. Raises LiteralError."""
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
        rounded = to_f32(value, token)
        return _shortest(rounded, 6, 9, lambda text: to_f32(float(text), text) == rounded)
    return _format_small_float(value, token, name)


def nan_payload_bits(name: str) -> int:
    """The bits of a NaN's payload: those of the mantissa in a type with infinities, else none."""
    return 0 if name in _NO_INFINITY else _MANTISSA_BITS[name]


_QUIET = 1 << 51
"""The payload of a plain `nan` in the text, whatever the type."""


def _format_nan(sign: str, payload: str | None, name: str) -> str:
    if payload is not None and int(payload, 16) != _QUIET:
        bits = nan_payload_bits(name)
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


def to_f32(value: float, token: str) -> float:
    """The nearest number of single precision. Raises LiteralError, which quotes `token`, where it
    is out of range."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        raise LiteralError(f"{token} is out of the range of f32") from None


def _format_small_float(value: float, token: str, name: str) -> str:
    if name == "f8e8m0fnu" and 0 < value <= _SMALLEST_F8E8M0FNU:
        return SMALLEST_SCALE
    rounded = _ROUNDING.get(name, _round_with_ml_dtypes)(value, name)
    if math.isfinite(value) and not math.isfinite(rounded):
        raise LiteralError(f"{token} is out of the range of {name}")
    if math.isnan(rounded) or (math.isinf(value) and name in _NO_INFINITY - _SATURATING):
        return _format_nan("-" if value < 0 else "", None, name)
    digits = math.ceil(1 + (_MANTISSA_BITS[name] + 1) * math.log10(2))
    return f"{rounded:.{digits}g}"


_SMALLEST_F8E8M0FNU = 2.0**-127
SMALLEST_SCALE = repr(_SMALLEST_F8E8M0FNU)
"""The f8e8m0fnu whose bits are 0. XLA prints it as 5.9e-39, which it reads as the next larger."""


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
