"""Literals as XLA prints them, recognized at a look."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.patterns import pattern


def is_plain(text: str, shape: Shape) -> bool:
    """Whether this is an array as XLA prints it, with numbers of few digits, at a look."""
    if shape.is_tuple or shape.element_type is None or not shape.dimensions:
        return False
    numbers = _FEW_DIGITS.get(shape.type_name)
    # Each number takes a character, so the skeleton is no longer than the text.
    fits = 0 < shape.element_count() < len(text)
    if numbers is None or not fits or not _are_plain(text, shape, numbers):
        return False
    skeleton = "{" + "," * (shape.dimensions[-1] - 1) + "}"
    for size in reversed(shape.dimensions[:-1]):
        skeleton = "{" + ",".join([skeleton] * size) + "}"
    return text.translate(_WITHOUT_NUMBERS) == skeleton


def _are_plain(text: str, shape: Shape, numbers: re.Pattern[str]) -> bool:
    """Whether `text` is numbers of few digits, braces, commas and blanks."""
    if len(text) > _SHORT:
        return numbers.fullmatch(text) is not None
    scalar = array_shape(shape.type_name)
    return all(
        is_plain_scalar(number.strip(" \n"), scalar)
        for number in text.translate(_BRACES_TO_BLANKS).split(",")
    )


_SHORT = 200  # characters, for which compiling a pattern takes longer than all else
_BRACES_TO_BLANKS = str.maketrans("{}", "  ")


def plain_values(text: str) -> Iterator[str]:
    """The numbers of a plain literal; of long ones a stretch at a time is held. O(length)."""
    start = 0
    while start < len(text):
        comma = text.find(",", start + _STRETCH)
        end = len(text) if comma < 0 else comma
        yield from _VALUE.findall(text, start, end)
        start = end


def is_plain_scalar(text: str, shape: Shape) -> bool:
    """Whether this is a number XLA prints, of a scalar `shape`, that its type can hold."""
    kind = shape.element_type
    if kind is None or shape.dimensions:
        return False
    if kind.is_integral:
        digits = text.removeprefix("-")
        if not (digits.isdecimal() and digits.isascii()) or len(digits) > _LONGEST:
            return False
        bits = kind.bits - (kind.kind == "signed")
        return -(1 << bits) * (kind.kind == "signed") <= int(text) < 1 << bits
    if kind.kind == "pred":
        return text in ("true", "false")
    largest = _LARGEST.get(kind.name)
    if largest is None:
        return False
    if text in _NOT_FINITE:
        return True
    begins_with_digit = text.removeprefix("-")[:1].isdecimal()
    if len(text) > _LONGEST or not begins_with_digit or not _OF_NUMBERS.issuperset(text):
        return False
    try:
        return -largest <= float(text) <= largest
    except ValueError:
        return False


_LONGEST = 18  # digits that fit into 64 bits whatever they are
_OF_NUMBERS = frozenset("0123456789.e+-")
_NOT_FINITE = ("inf", "-inf", "nan")
_LARGEST = {"f64": 1.79e308, "f32": 3.402823e38, "bf16": 3.3895e38, "f16": 65504.0}
"""A bound, slightly below the largest value, by element type."""


def _plain(number: str) -> re.Pattern[str]:
    """Numbers in any braces, a comma between each two, and blanks."""
    return pattern(rf"[{{ \n]*+{number}(?:[ }}\n]*+,[ {{\n]*+{number})*+[ }}\n]*+")


_FEW_DIGITS = {
    "pred": _plain("(?:[01]|true|false)"),
    **dict.fromkeys(("s8", "u8"), _plain(r"\d{1,2}+")),
    **dict.fromkeys(("s16", "u16"), _plain(r"\d{1,4}+")),
    "s32": _plain(r"-?\d{1,9}+"),
    "u32": _plain(r"\d{1,9}+"),
    "s64": _plain(r"-?\d{1,18}+"),
    "u64": _plain(r"\d{1,18}+"),
    "f16": _plain(r"-?\d{1,4}+(?:\.\d*+)?+(?:e-\d{1,3}+)?+"),
    **dict.fromkeys(
        ("f32", "bf16"), _plain(r"-?\d{1,9}+(?:\.\d*+)?+(?:e(?:[+]?[012]\d|-\d{1,3}+))?+")
    ),
    "f64": _plain(r"-?\d{1,9}+(?:\.\d*+)?+(?:e[+-]?\d\d)?+"),
}
_VALUE = pattern(r"[^{}, \n]+")
_STRETCH = 1 << 20  # characters
_WITHOUT_NUMBERS = {ord(c): None for c in "0123456789.+-aeflrstu \n"}
