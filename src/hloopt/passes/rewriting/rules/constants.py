"""Values of constants, read from their text: scalars, and arrays of one repeated value."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeAlias

from hloopt.diagnostics import LiteralError
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.literals.literal_values import float_text
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.element_type import ElementType
from hloopt.ir.shapes.shape import Shape
from hloopt.patterns import pattern

Scalar: TypeAlias = bool | int | float | complex

_TOKEN = pattern(r"\([^()]*\)|[^\s(){},]+(?:\(0x[0-9a-fA-F]+\))?")
_COMMENT = pattern(r"/\*.*?\*/")
_LONG = 200


def scalar_of(instruction: Instruction) -> Scalar | None:
    """The value of a constant with exactly one element; None for anything else."""
    if instruction.opcode is not Opcode.CONSTANT or not instruction.shape.is_array:
        return None
    if instruction.shape.element_count() != 1:
        return None
    return splat_of(instruction)


def splat_of(constant: Instruction) -> Scalar | None:
    """The value that every element of a constant has; None where they differ or are not known."""
    shape = constant.shape
    if not shape.is_array or not shape.element_count():
        return None
    payload = constant.payload
    if len(payload) <= _LONG:
        return _short_splat(payload, shape)
    token = _long_splat_token(payload)
    return None if token is None or shape.element_type is None else _read(token, shape.element_type)


def splat_value(instruction: Instruction) -> Scalar | None:
    """The value of all elements of a constant, or of a broadcast of a broadcast … of one."""
    while instruction.opcode is Opcode.BROADCAST:
        (instruction,) = instruction.operands
    return splat_of(instruction) if instruction.opcode is Opcode.CONSTANT else None


def scalar_text(value: Scalar, shape: Shape) -> str:
    """The text of a value as a rank-0 constant with the element type of `shape`."""
    kind = shape.element_type
    assert kind is not None
    if kind.kind == "pred":
        return "true" if value else "false"
    if kind.is_integral:
        return str(wrapped(int(value.real), kind))
    if kind.kind == "complex":
        part = "f32" if kind.bits == 64 else "f64"
        number = complex(value)
        return f"({_float(number.real, part)}, {_float(number.imag, part)})"
    assert not isinstance(value, complex)
    return _float(float(value), kind.name)


def converted(value: Scalar, shape: Shape) -> Scalar | None:
    """A value as `convert` makes it of the element type of `shape`; None where it does not fit."""
    kind = shape.element_type
    if kind is None or isinstance(value, complex) or kind.kind == "complex":
        return None
    if kind.kind == "pred":
        return bool(value)
    if kind.is_floating:
        try:
            return float(_float(float(value), kind.name))
        except (LiteralError, ValueError):
            return None
    if not math.isfinite(value):
        return None
    low, high = integer_range(kind)
    if isinstance(value, int):
        return wrapped(int(value), kind)
    return int(value) if low <= value <= high else None


def wrapped(value: int, kind: ElementType) -> int:
    """An integer modulo 2 to the number of bits of its type."""
    value %= 1 << kind.bits
    if kind.kind == "signed" and value >> (kind.bits - 1):
        value -= 1 << kind.bits
    return value


def integer_range(kind: ElementType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    if kind.kind == "signed":
        return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1
    return 0, (1 << kind.bits) - 1


def _float(value: float, name: str) -> str:
    return _number(repr(value), name)


@lru_cache(maxsize=4096)
def _number(text: str, name: str) -> str:
    return float_text(text, name)


def _long_splat_token(text: str) -> str | None:
    if ELIDED in text:
        return None
    first = _TOKEN.search(text)
    second = first and _TOKEN.search(text, first.end())
    if second is None or first is None or first[0] != second[0]:
        return None
    tokens = set(_TOKEN.findall(_COMMENT.sub("", text)))
    return first[0] if len(tokens) == 1 else None


@lru_cache(maxsize=4096)
def _short_splat(text: str, shape: Shape) -> Scalar | None:
    if ELIDED in text:
        return None
    tokens = _TOKEN.findall(_COMMENT.sub("", text))
    if len(set(tokens)) != 1:
        return None
    if len(tokens) == 1 != shape.element_count():
        return None  # the first element: zeros behind it
    return None if shape.element_type is None else _read(tokens[0], shape.element_type)


def _read(token: str, kind: ElementType) -> Scalar | None:
    try:
        if kind.kind == "pred":
            return token in ("true", "1")
        if kind.is_integral:
            return wrapped(int(token), kind)
        if kind.kind == "complex":
            real, imaginary = token[1:-1].split(",")
            return complex(float(real), float(imaginary))
        if "nan" in token:
            return float("nan")
        return float(token) if kind.name in ("f32", "f64") else float(float_text(token, kind.name))
    except ValueError:
        return None
