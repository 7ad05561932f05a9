"""The comments of a text, and what they stand at, so that a formatter can keep them.

Reading drops comments. `attach_comments` finds them again and gives each to an instruction, a
computation's first or last line, or the header: one on a line of its own to what follows it, one
behind something on its line to that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.patterns import pattern

_SOURCE = r"/\*source=(?:[^*\n]|\*(?!/))*:\d+\*/"
SOURCE_COMMENT = pattern(rf"[ \t]*{_SOURCE}")
"""The comment `/*source=model.py:12*/` that the option `inline_source` writes."""
_STRING_OR_COMMENT = pattern(
    r"""(?P<skip>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|/\*(?:index|i\d+)=\d+\*/|"""
    rf"{_SOURCE})|//[^\n]*|/\*.*?\*/",
    re.S,
)
"""Comments of printers, XLA's `/*index=5*/` and `SOURCE_COMMENT`, are written anew and not kept."""

Element = Module | Instruction | Computation | tuple[Computation]
"""The owner of a line: the header, an instruction, the first or (in a tuple) last of a
computation."""


class Place(NamedTuple):
    """The place in the text where an element stands."""

    start: int
    end: int
    element: Element


class Comments(NamedTuple):
    """Comments by what they stand at, in the order of the text.

    `before` holds those on lines of their own; an empty text stands for an empty line after a
    comment. `behind` holds those at the end of an element's line, `last` those after everything.
    """

    before: dict[Element, list[str]]
    behind: dict[Element, list[str]]
    last: list[str]


def attach_comments(text: str, places: Sequence[Place]) -> Comments:
    """All comments of `text`, whose elements stand at `places`. Linear but for sorting."""
    comments = Comments({}, {}, [])
    ordered = sorted(places, key=lambda place: place.start)
    starts = [place.start for place in ordered]
    for start, end in _comments(text):
        following = bisect_right(starts, start)
        previous = ordered[following - 1] if following else None
        comment = text[start:end].rstrip()
        line = text[text.rfind("\n", 0, start) + 1 : start]
        if previous is not None and start < previous.end:
            comments.before.setdefault(previous.element, []).append(comment)
        elif previous is not None and line.strip():
            comments.behind.setdefault(previous.element, []).append(comment)
        else:
            block = comments.last
            if following < len(ordered):
                block = comments.before.setdefault(ordered[following].element, [])
            block.append(comment)
            if re.match(r"[ \t\r]*\n[ \t\r]*\n", text[end : end + 200]):
                block.append("")
    return comments


def _comments(text: str) -> Iterator[tuple[int, int]]:
    for match in _STRING_OR_COMMENT.finditer(text):
        if match["skip"] is None:
            yield match.span()
