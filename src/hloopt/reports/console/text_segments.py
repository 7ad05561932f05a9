"""Two versions of one text, coloured where they differ and shortened where they agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from hloopt.patterns import pattern

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_BEFORE_STYLE, _AFTER_STYLE = "red", "green"
_LINES_SHOWN = 3
_START = 64  # characters shown of an instruction's start: name, shape and opcode
_AROUND = 24  # characters shown next to what differs


def one_below_the_other(before: str | None, after: str | None, console: Console) -> Iterator[Text]:
    """Lines with `-` and `+`, at most three of each, continuation lines indented."""
    from rich.text import Text

    width = console.width - len("- ")
    old, new = _shortened(before, after, width)
    for sign, style, text in (("-", _BEFORE_STYLE, old), ("+", _AFTER_STYLE, new)):
        for number, line in enumerate(_broken(text, width, console)):
            yield Text.assemble(" " if number else (sign, style), " ", line)


def in_two_columns(before: str | None, after: str | None, console: Console) -> Iterator[Text]:
    """Old text left, new text right, in at most three lines."""
    from rich.text import Text

    from hloopt.reports.console.units import columns

    half = (console.width - len(" │ ")) // 2
    old, new = _shortened(before, after, half)
    halves = (_broken(text, half, console) for text in (old, new))
    for left, right in zip_longest(*halves, fillvalue=Text()):
        space = " " * (half - columns(left.plain))
        yield Text.assemble(left, space, " ", ("│", "dim"), " ", right)


def _broken(text: Text | None, width: int, console: Console) -> list[Text]:
    """HLO in lines, broken between words; a word longer than a line is broken where that ends."""
    from hloopt.reports.console.styled_text import escaped

    lines = [] if text is None else list(escaped(text).wrap(console, width))
    for line in lines:
        line.rstrip()
    return lines


def _shortened(
    before: str | None, after: str | None, width: int
) -> tuple[Text | None, Text | None]:
    is_long = max(len(before or ""), len(after or "")) > width
    texts = highlight(before, after, _START if is_long else None)
    for text in texts:
        if text is not None and len(text) > _LINES_SHOWN * width:
            text.truncate(_LINES_SHOWN * width, overflow="ellipsis")
    return texts


def highlight(
    before: str | None, after: str | None, start: int | None
) -> tuple[Text | None, Text | None]:
    """Both texts, coloured where they differ; None for None.

    Unless `start` is None, long agreeing parts are elided: `start` characters remain of a first
    one. O(length), apart from the comparison of up to 300 words.
    """
    if before is None or after is None:
        old = None if before is None else _coloured([Segment(before, True)], _BEFORE_STYLE)
        new = None if after is None else _coloured([Segment(after, True)], _AFTER_STYLE)
        return old, new
    old_parts, new_parts = split_by_difference(before, after)
    if start is not None:
        old_parts, new_parts = elide(old_parts, start), elide(new_parts, start)
    return (
        _coloured(old_parts, f"bold {_BEFORE_STYLE}"),
        _coloured(new_parts, f"bold {_AFTER_STYLE}"),
    )


def _coloured(segments: Sequence[Segment], style: str) -> Text:
    from rich.text import Text

    return Text.assemble(*((part.text, style if part.differs else "") for part in segments))


@dataclass(slots=True)
class Segment:
    """A piece of a text; `differs` tells whether the other text has something else there."""

    text: str
    differs: bool


_TOKEN = pattern(r"[\w.\-]+|\s+|.", re.S)
_MOST_COMPARED = 300  # tokens: the comparison is quadratic


def split_by_difference(before: str, after: str) -> tuple[list[Segment], list[Segment]]:
    """Both texts in segments of whole words.

    Between the common start and the common end at most 300 words are compared; a longer part
    differs as a whole. Linear in the length of the texts apart from that.
    """
    from difflib import SequenceMatcher

    old: list[str] = _TOKEN.findall(before)
    new: list[str] = _TOKEN.findall(after)
    start = _common_length(old, new)
    end = _common_length(old[start:][::-1], new[start:][::-1])
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    old_parts = [Segment("".join(old[:start]), False)]
    new_parts = [Segment("".join(new[:start]), False)]
    if max(len(old_middle), len(new_middle)) > _MOST_COMPARED:
        steps = [("replace", 0, len(old_middle), 0, len(new_middle))]
    else:
        steps = list(SequenceMatcher(None, old_middle, new_middle, False).get_opcodes())
    for step, old_from, old_to, new_from, new_to in steps:
        old_parts.append(Segment("".join(old_middle[old_from:old_to]), step != "equal"))
        new_parts.append(Segment("".join(new_middle[new_from:new_to]), step != "equal"))
    old_parts.append(Segment("".join(old[len(old) - end :]), False))
    new_parts.append(Segment("".join(new[len(new) - end :]), False))
    return old_parts, new_parts


def _common_length(old: Sequence[str], new: Sequence[str]) -> int:
    for length, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            return length
    return min(len(old), len(new))


def elide(segments: Sequence[Segment], start: int) -> list[Segment]:
    """The segments with `…` in agreeing ones that are long.

    `start` characters stay of a first segment, and a few next to what differs; where a space or
    the end of an item is near, the cut is there.
    """
    result: list[Segment] = []
    last = len(segments) - 1
    for number, segment in enumerate(segments):
        text = segment.text
        head = start if number == 0 else _AROUND
        tail = _AROUND if number < last else 0
        if not segment.differs and len(text) > head + tail:
            shown = _head(text, head) if tail else _item(text)
            text = f"{shown}…{_tail(text, tail)}"
        result.append(Segment(text, segment.differs))
    return result


def _item(text: str) -> str:
    """The rest of an item in a list, with the comma behind it."""
    cut = text.find(", ", 0, _AROUND)
    return text[: cut + 2 if cut >= 0 else _AROUND]


def _head(text: str, length: int) -> str:
    cut = text.rfind(" ", length // 2, length)
    return text[: cut + 1 if cut >= 0 else length]


def _tail(text: str, length: int) -> str:
    if not length:
        return ""
    cut = text.find(" ", len(text) - length, len(text) - length // 2)
    return text[cut + 1 if cut >= 0 else len(text) - length :]
