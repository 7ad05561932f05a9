"""Attribute text: where a value ends, and `key=value, …` split into a mapping.

An attribute's value stays text until someone asks for its meaning (`attribute_values`).
"""

from __future__ import annotations

import re
from itertools import chain

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.shapes.shape_parser import scan_shape
from hloopt.ir.trivia import skip_trivia
from hloopt.patterns import pattern

STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|\'[^\'\\]*+(?:\\.[^\'\\]*+)*+\''
"""A string in double or single quotes; for regular expressions with re.S."""

_KEY = pattern(r"([A-Za-z_][\w.\-]*)=")
_STRING = pattern(STRING, re.S)
_BRACE_PIECE = pattern(
    r'(?:[^{}"/]++|\{[^{}"/]*+\})++|"[^"\\]*+(?:\\.[^"\\]*+)*+"|/\*.*?(?:\*/|\Z)|//[^\r\n]*|/|([{}])',
    re.S,
)
_PAREN_PIECE = pattern(
    r"(?:[^()\"/]++|\([^()\"/]*+\))++|\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"|/\*.*?(?:\*/|\Z)|//[^\r\n]*|/|([()])",
    re.S,
)
_IOTA = pattern(
    r"\[[\d,\s]*\]\s*<=\s*\[[\d,\s]*\](?:\s*T\s*\([\d,\s]*\))?",
)
_MESH = pattern(r"mesh\s*\[[^\]]*\](?:\s*,\s*device_ids\s*=\s*\((?:[^()]|\([^()]*\))*\))?\s*\{")
_WORD = pattern(r"[0-9a-zA-Z?]++_[0-9a-zA-Z?]++->[0-9a-zA-Z?]++|%?[\w.\-+?:]+|[^\s,{}()]+")
_SIMPLE_WORD = pattern(r"\w++(?=[,\n])")
_SCALAR = pattern(r"-?nan\(0x[0-9a-fA-F]+\)|[^\s,{}()]+")
_FLAT = r"[^{}\"'/]*+(?:\"[^\"\\]*+\"[^{}\"'/]*+)*+"
_SIMPLE_PAIRS = pattern(
    r"(?<![\w.\-])([A-Za-z_][\w.\-]*)="  # no start within a word: it may be a megabyte long
    rf'(\{{{_FLAT}(?:\{{{_FLAT}\}}{_FLAT})*+\}}|"[^"\\]*+"|%?[\w.\-]+'
    r"|\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?)(?:, |$)"
)

_SPLIT: dict[str, dict[str, str]] = {}


def split_attributes(text: str) -> dict[str, str]:
    """The attributes in `text`, by name, in order. Shared per distinct text: do not change it.

    Raises HloSyntaxError for text that is not an attribute list, or a name given twice.
    """
    attributes = _SPLIT.get(text)
    if attributes is None:
        attributes = _SPLIT[text] = _split(text)
    return attributes


def _split(text: str) -> dict[str, str]:
    pairs = _SIMPLE_PAIRS.findall(text)
    result: dict[str, str] = dict(pairs)
    length = sum(map(len, chain.from_iterable(pairs))) + 3 * len(pairs) - 2
    if length == len(text) and len(result) == len(pairs):
        return result
    return _split_slowly(text) if text else {}


def _split_slowly(text: str) -> dict[str, str]:
    """`split_attributes` for nested braces, comments, iota lists and the like."""
    result: dict[str, str] = {}
    position = 0
    while True:
        position = skip_trivia(text, position)
        name = _KEY.match(text, position)
        if name is None:
            raise HloSyntaxError(
                f"expected an attribute (name=value), found '{text[position : position + 24]}'"
            )
        key = name[1]
        if key in result:
            raise HloSyntaxError(f"attribute '{key}' is given twice", code="HLO107")
        start = skip_trivia(text, name.end())
        position = scan_value(text, start, key)
        result[key] = text[start:position]
        position = skip_trivia(text, position)
        if position == len(text):
            return result
        if text[position] != ",":
            raise HloSyntaxError(
                f"expected ',' after attribute '{key}', found '{text[position : position + 24]}'"
            )
        position += 1


def scan_value(text: str, start: int, key: str) -> int:
    """The end of the value that begins at `start`. O(length of the value).

    Raises HloSyntaxError when the value is not complete.
    """
    if key == "literal":
        return _scan_literal_with_shape(text, start)
    if key == "outfeed_shape":
        return scan_shape(text, start)[1]
    first = text[start : start + 1]
    if first == "{":
        return scan_braces(text, start)
    if first in ('"', "'"):
        string = _STRING.match(text, start)
        if string is None:
            raise HloSyntaxError(f"the string of attribute '{key}' is not terminated")
        return string.end()
    if first == "[":
        iota = _IOTA.match(text, start)
        if iota is None:
            raise HloSyntaxError(f"expected [dimensions]<=[shape] as the value of '{key}'")
        return iota.end()
    word = _SIMPLE_WORD.match(text, start)
    if word:
        return word.end()
    mesh = _MESH.match(text, start)
    if mesh:
        return scan_braces(text, mesh.end() - 1)
    word = _WORD.match(text, start)
    if word is None:
        raise HloSyntaxError(f"attribute '{key}' has no value")
    return word.end()


def _scan_literal_with_shape(text: str, start: int) -> int:
    """`s32[2]{0} {1, 2}`, or a tuple whose elements are such: `(s32[] 1, pred[] false)`."""
    if text.startswith("(", start):
        position = scan_literal(text, start)
        following = skip_trivia(text, position)
        return scan_literal(text, following) if text.startswith("(", following) else position
    _, position = scan_shape(text, start)
    return scan_literal(text, skip_trivia(text, position))


def scan_literal(text: str, start: int) -> int:
    """The end of the literal that begins at `start`: `{…}`, `(…)` or one scalar."""
    first = text[start : start + 1]
    if first == "{":
        return scan_braces(text, start)
    if first == "(":
        return _balanced(text, start, _PAREN_PIECE, "(", "parenthesis")
    word = _SCALAR.match(text, start)
    if word is None:
        raise HloSyntaxError("expected a literal")
    return word.end()


def scan_braces(text: str, start: int) -> int:
    """The position after the brace that closes the one at `start`."""
    return _balanced(text, start, _BRACE_PIECE, "{", "brace")


def _balanced(text: str, start: int, piece: re.Pattern[str], opening: str, what: str) -> int:
    depth = 1  # pieces behind the opening one: those that are closed at once count as one
    position = start + 1
    while match := piece.match(text, position):
        position = match.end()
        if match[1]:
            depth += 1 if match[1] == opening else -1
            if depth == 0:
                return position
    raise HloSyntaxError(f"this {what} is never closed")
