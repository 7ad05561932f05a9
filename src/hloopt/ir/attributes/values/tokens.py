"""Attribute text brought into one form before it is parsed, and parsed once per distinct text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from hloopt.diagnostics import HloSyntaxError
from hloopt.patterns import pattern

_Value = TypeVar("_Value")
_NOT_PARSED = object()


def memoized(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Let `parse` run once per distinct text."""
    values: dict[str, _Value] = {}

    @wraps(parse)
    def lookup(text: str) -> _Value:
        value = values.get(text, _NOT_PARSED)
        if value is _NOT_PARSED:
            value = values[text] = parse(text)
        return value  # type: ignore[return-value]  # what is not parsed has been

    return lookup


def malformed(what: str, text: str) -> HloSyntaxError:
    """The error for a `text` that is not a `what`."""
    shown = text if len(text) <= 60 else text[:57] + "..."
    return HloSyntaxError(f"expected {what}, found '{shown}'")


# What is never closed goes on to the end: looking for its end again and again is quadratic.
_STRING = (
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)|'
    r"'[^'\\]*+(?:\\.[^'\\]*+)*+(?:'|\Z)"
)
_IS_COMPACT = pattern(r"[^\s/\"']*")
_BLANK = r"(?:\s|/\*.*?(?:\*/|\Z)|//[^\r\n]*)"
_PIECE = pattern(
    rf"({_STRING})|{_BLANK}*+([{{}}(),\[\]:]){_BLANK}*+|({_BLANK}++)",
    re.S,
)
_AFTER_EQUALS = pattern(r"= ")


def compact(text: str) -> str:
    """`text` without comments, and without blanks except one between two words.

    Strings stay as they are. Linear.
    """
    if _IS_COMPACT.fullmatch(text):
        return text
    dense = text.replace(", ", ",").replace(": ", ":").replace("{ ", "{").replace(" }", "}")
    if _IS_COMPACT.fullmatch(dense):
        return dense  # no string or comment, and all blanks where XLA prints some
    return _AFTER_EQUALS.sub("=", _PIECE.sub(_compact_piece, text)).strip(" ")


def _compact_piece(piece: re.Match[str]) -> str:
    return piece[1] or piece[2] or " "
