"""Attributes in MLIR's syntax, as front ends write them on composite calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from hloopt.patterns import pattern

Array: TypeAlias = str | list[Any]
"""An array of arrays, or of the texts of other attributes; or such a text alone."""

_TOKEN = pattern(r'"(?:[^"\\]|\\.)*"|->|[\[\]{}<>(),=]|[^"\[\]{}<>(),=-]+|.')
_OPENING, _CLOSING = "[{<(", "]}>)"
_INTEGER = pattern(r"\s*(-?\d{1,18})\s*(?::\s*\w+\s*)?")


def dictionary_value(text: str, name: str) -> str | None:
    """The text of an entry's value in a dictionary `{name = value, …}`; None without that entry.

    Raises ValueError for what is not a dictionary. O(length of the text).
    """
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError("it is not in braces")
    for entry in _split(text[1:-1]):
        key, is_pair, value = entry.partition("=")
        if is_pair and key.strip().strip('"') == name:
            return value.strip()
    return None


def parse_array(text: str) -> Array:
    """An attribute, as an array if it is one. Arrays are read three levels deep."""
    return _parse_array(text, 3)


def _parse_array(text: str, levels: int) -> Array:
    text = text.strip()
    if not (levels and text.startswith("[") and text.endswith("]")):
        return text
    return [_parse_array(part, levels - 1) for part in _split(text[1:-1])]


def parse_integer(text: Array) -> int | None:
    """The value of an integer attribute, whatever its type: `2`, `2 : i64`; None for others."""
    found = _INTEGER.fullmatch(text) if isinstance(text, str) else None
    return int(found[1]) if found else None


def _split(text: str) -> Iterator[str]:
    """The parts between the commas outside of brackets. Raises ValueError for an odd bracket."""
    start = position = depth = 0
    for token in _TOKEN.findall(text):
        if token == "," and not depth:
            yield text[start:position]
            start = position + 1
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth < 0:
            raise ValueError("a bracket is closed that is not open")
        position += len(token)
    if depth:
        raise ValueError("a bracket is not closed")
    if text[start:].strip():
        yield text[start:]
