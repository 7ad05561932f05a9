"""The padding of each dimension of an array."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.ir.attributes.values.numbers import DIGITS_THAT_FIT, parse_int
from hloopt.ir.attributes.values.tokens import compact, malformed, memoized
from hloopt.patterns import pattern


class PaddingDimension(NamedTuple):
    """Elements added before, after and between the elements of one dimension."""

    low: int = 0
    high: int = 0
    interior: int = 0


_PAD = r"-?\d+_-?\d+(?:_\d{1,18})?"
_IS_PADDING = pattern(rf"{_PAD}(?:x{_PAD})*")


@memoized
def parse_padding(text: str) -> tuple[PaddingDimension, ...]:
    """`1_1x0_1` (low_high) or `1_1_1x0_1_0` (low_high_interior); the two may be mixed."""
    printed = _printed_padding(text)
    if printed is not None:
        return printed
    dense = compact(text)
    if not _IS_PADDING.fullmatch(dense):
        raise malformed("padding low_high[_interior]x…", text)
    return tuple(PaddingDimension(*map(parse_int, one.split("_"))) for one in dense.split("x"))


def _printed_padding(text: str) -> tuple[PaddingDimension, ...] | None:
    """The padding in `1_1x0_-1_2`, without a regular expression; None for other text."""
    dimensions = [dimension.split("_") for dimension in text.split("x")]
    for numbers in dimensions:
        low_and_high = [number.removeprefix("-") for number in numbers[:2]]
        if not 2 <= len(numbers) <= 3 or not all(map(_is_short, (*low_and_high, *numbers[2:]))):
            return None
    return tuple(PaddingDimension(*map(int, numbers)) for numbers in dimensions)


def _is_short(number: str) -> bool:
    return number.isdecimal() and number.isascii() and len(number) <= DIGITS_THAT_FIT
