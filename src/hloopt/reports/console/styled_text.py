"""Texts with styles, cut, broken between words and escaped as plain ones are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from hloopt.diagnostics import printable
from hloopt.reports.console.units import Cut, columns, head, middle

if TYPE_CHECKING:
    from rich.console import Console


def cut(text: Text, width: int, how: Cut) -> Text:
    """`text` cut as `how` cuts a plain text, with the styles of what is left."""
    plain = how(text.plain, width)
    if plain == text.plain:
        return text
    before, mark, after = plain.partition("…")
    if not (mark and text.plain.startswith(before) and text.plain.endswith(after)):
        return Text(plain, text.style)
    end = text[len(text) - len(after) :] if after else ""
    return Text.assemble(text[: len(before)], mark, end, style=text.style)


def escaped(text: Text) -> Text:
    """A copy of `text` in which what is not printable is escaped."""
    if text.plain.isprintable():
        return text.copy()
    result = Text(style=text.style)
    for number in range(len(text)):
        piece = text[number]
        shown = printable(piece.plain)
        result.append_text(piece if shown == piece.plain else Text(shown))
    return result


def wrapped(text: Text, width: int, console: Console) -> list[Text]:
    """`text` in lines of at most `width` columns, broken between words and indented as it begins.

    A word that is longer than a line is cut.
    """
    indent = min(len(text.plain) - len(text.plain.lstrip(" ")), width // 2)
    if indent:
        begin = text[:indent]
        return [begin + line for line in wrapped(text[indent:], width - indent, console)]
    if any(columns(word) > width for word in text.plain.split(" ")):
        words = text.split(" ", allow_blank=True)
        text = Text(" ").join([cut(word, width, middle) for word in words])
    lines = list(text.wrap(console, width))
    for line in lines:
        line.rstrip()
    return lines


def as_it_is(text: Text) -> Text:
    """`text` to be printed in one line, without blanks at its end."""
    text.rstrip()
    text.no_wrap, text.overflow = True, "ignore"
    return text


def fitting(text: Text, width: int) -> Text:
    """The same for a text that may be too wide: its end is cut off."""
    return as_it_is(text if columns(text.plain) <= width else cut(text, width, head))
