"""Integers, truth values, slices and names in attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from hloopt.ir.attributes.values.tokens import compact, malformed, memoized
from hloopt.patterns import pattern

_INT = r"-?\d{1,20}"
_INTS = rf"\{{(?:{_INT}(?:,{_INT})*)?\}}"
_IS_INT = pattern(_INT)
_IS_INTS = pattern(_INTS)
_IS_INT_LISTS = pattern(rf"\{{(?:{_INTS}(?:,{_INTS})*)?\}}")
_EACH_INTS = pattern(r"\{([^{}]*)\}")


@memoized
def parse_int(text: str) -> int:
    """`text` as an integer of at most 64 bits; unsigned values above 2^63-1 are taken as signed."""
    if len(text) <= DIGITS_THAT_FIT and text.isdecimal() and text.isascii():
        return int(text)
    digits = compact(text)
    if not _IS_INT.fullmatch(digits):
        raise malformed("an integer", text)
    value = int(digits)
    if not -(1 << 63) <= value < 1 << 64:
        raise malformed("an integer of 64 bits", text)
    return value - (1 << 64) if value >= 1 << 63 else value


@memoized
def parse_bool(text: str) -> bool:
    """`true` or `false`."""
    word = compact(text)
    if word not in ("true", "false"):
        raise malformed("true or false", text)
    return word == "true"


@memoized
def parse_ints(text: str) -> tuple[int, ...]:
    """`{1,0}`."""
    if not _IS_INTS.fullmatch(text):
        dense = compact(text)
        if not _IS_INTS.fullmatch(dense):
            raise malformed("a list of integers {a,b,…}", text)
        text = dense
    return split_ints(text[1:-1])


def split_ints(text: str) -> tuple[int, ...]:
    """`1,0`, perhaps empty: already checked, without blanks."""
    if not text:
        return ()
    numbers = text.split(",")
    are_short = max(map(len, numbers)) <= DIGITS_THAT_FIT
    return tuple(map(int if are_short else parse_int, numbers))


DIGITS_THAT_FIT = 18  # into 64 bits, with or without a sign


@memoized
def parse_int_lists(text: str) -> tuple[tuple[int, ...], ...]:
    """`{{0,1},{2,3}}`."""
    dense = compact(text)
    if not _IS_INT_LISTS.fullmatch(dense):
        raise malformed("lists of integers {{a,b},{c,d},…}", text)
    return tuple(split_ints(numbers) for numbers in _EACH_INTS.findall(dense, 1))


def format_ints(numbers: Iterable[int]) -> str:
    """`{1,0}`."""
    return f"{{{','.join(map(str, numbers))}}}"


def format_int_lists(lists: Iterable[Iterable[int]]) -> str:
    """`{{0,1},{2,3}}`."""
    return f"{{{','.join(map(format_ints, lists))}}}"


class Slice(NamedTuple):
    """The part `start`, `start + stride`, … below `limit` of one dimension."""

    start: int
    limit: int
    stride: int = 1


_IS_SLICES = pattern(r"\{(?:\[[-\d:]+\](?:,(?=\[)|(?=\})))*\}")


@memoized
def parse_slices(text: str) -> tuple[Slice, ...]:
    """`{[0:4:2], [0:1]}`, one entry per dimension."""
    printed = _printed_slices(text)
    if printed is not None:
        return printed
    dense = compact(text)
    if not _IS_SLICES.fullmatch(dense):
        raise malformed("slices {[start:limit:stride], …}", text)
    entries = [entry.split(":") for entry in dense[2:-2].split("],[")] if len(dense) > 2 else []
    if not all(2 <= len(numbers) <= 3 for numbers in entries):
        raise malformed("slices {[start:limit:stride], …}", text)
    return tuple(Slice(*map(parse_int, numbers)) for numbers in entries)


def _printed_slices(text: str) -> tuple[Slice, ...] | None:
    """The slices in `{[0:4:2], [0:1]}` as XLA prints it, without a regular expression."""
    if text[:2] != "{[" or text[-2:] != "]}":
        return None
    entries = [entry.split(":") for entry in text[2:-2].split("], [")]
    for numbers in entries:
        if not 2 <= len(numbers) <= 3:
            return None
        for number in numbers:
            if not number.isdecimal() or len(number) > DIGITS_THAT_FIT:
                return None
    return tuple(Slice(*map(int, numbers)) for numbers in entries)


_NAME = r"%?[A-Za-z_][\w.\-]*"
_IS_NAMES = pattern(rf"\{{(?:{_NAME}(?:,{_NAME})*)?\}}", re.A)


@memoized
def parse_names(text: str) -> tuple[str, ...]:
    """`{%a, %b}` as names without `%`."""
    dense = compact(text)
    if not _IS_NAMES.fullmatch(dense):
        raise malformed("names {%a, %b, …}", text)
    return tuple(name.removeprefix("%") for name in dense[1:-1].split(",")) if dense != "{}" else ()
