"""Strings with C escapes, and the maps of names to strings called frontend attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.text import STRING
from hloopt.ir.attributes.values.tokens import malformed, memoized
from hloopt.ir.trivia import skip_trivia
from hloopt.patterns import pattern

_IS_STRING = pattern(STRING, re.S)
_IS_PLAIN = pattern(r"[ !#-&(-\[\]-~]*")
_ESCAPE = pattern(
    rb"\\(?:([abfnrtv\\?'\"])|([0-7]{1,3})|x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.|$))",
    re.S,
)
_UNESCAPED = dict(zip(b"abfnrtv\\?'\"", b"\a\b\f\n\r\t\v\\?'\"", strict=True))
_TO_ESCAPE = pattern(rb"[^ !#-&(-\[\]-~]")
_ESCAPED = {10: b"\\n", 13: b"\\r", 9: b"\\t", 34: b'\\"', 39: b"\\'", 92: b"\\\\"}


@memoized
def parse_string(text: str) -> str:
    """The content of a string in double or single quotes, C escapes resolved.

    Bytes that are not UTF-8 become surrogates, which `quote_string` turns back.
    """
    content = text[1:-1]
    if text == f'"{content}"' and '"' not in content and "\\" not in content:
        return content
    if not _IS_STRING.fullmatch(text):
        raise malformed("a string", text)
    if "\\" not in content:
        return content
    raw = content.encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_unescape, raw).decode("utf-8", "surrogateescape")


def _unescape(escape: re.Match[bytes]) -> bytes:
    simple, octal, hexadecimal, short, long, unknown = escape.groups()
    if simple:
        return bytes((_UNESCAPED[simple[0]],))
    if unknown is not None:
        shown = escape[0].decode("utf-8", "replace")
        raise HloSyntaxError(f"a string has the unknown escape '{shown}'")
    code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
    if short or long:
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise HloSyntaxError(f"a string has the escape '{escape[0].decode()}' of no character")
        return chr(code).encode()
    if code > 255:
        raise HloSyntaxError(f"the escape '{escape[0].decode()}' does not fit into a byte")
    return bytes((code,))


@memoized
def quote_string(content: str) -> str:
    """`content` in double quotes with C escapes; bytes outside ASCII in octal, as XLA prints."""
    return f'"{escape_string(content)}"'


def escape_string(content: str) -> str:
    """`content` with C escapes, without quotes."""
    if content.replace("_", "").isalnum() and content.isascii():
        return content
    if _IS_PLAIN.fullmatch(content):
        return content
    raw = content.encode("utf-8", "surrogateescape")
    return _TO_ESCAPE.sub(_escape, raw).decode("ascii")


def _escape(byte: re.Match[bytes]) -> bytes:
    code = byte[0][0]
    return _ESCAPED.get(code) or b"\\%03o" % code


_DICTIONARY_PIECE = pattern(r'[^{}"]+|"[^"\\]*+(?:\\.[^"\\]*+)*+"|([{}])', re.S)


def dictionary_end(text: str, start: int) -> int | None:
    """The end of the `{…}` at `start`, or None without a matching brace. O(length).

    Braces in double quotes do not count; there are no comments in a dictionary.
    """
    depth = 0
    position = start
    while piece := _DICTIONARY_PIECE.match(text, position):
        position = piece.end()
        if piece[1]:
            depth += 1 if piece[1] == "{" else -1
            if depth == 0:
                return position
        elif depth == 0:
            return None
    return None


def split_dictionaries(text: str) -> list[str] | None:
    """The elements of a list `{{…}, {…}}`; None where `text` is no such list. Linear."""
    found: list[str] = []
    position = skip_trivia(text, 1)
    while text.startswith("{", position) and (end := dictionary_end(text, position)):
        found.append(text[position:end])
        position = skip_trivia(text, end)
        if text[position:] == "}":
            return found
        if text[position : position + 1] != ",":
            return None
        position = skip_trivia(text, position + 1)
    return None


def is_dictionary(text: str) -> bool:
    """Whether `text` is one brace-balanced `{…}`, which is then written without quotes."""
    if not (text.startswith("{") and text.endswith("}")):
        return False
    return _is_plain_dictionary(text) or dictionary_end(text, 0) == len(text)


def _is_plain_dictionary(text: str) -> bool:
    """Whether `text` in braces is a dictionary, of few levels, at a look."""
    pieces = text.split('"')
    if "\\" in text or len(pieces) % 2 == 0:
        return False
    braces = "".join(pieces[::2]).translate(_ONLY_BRACES)[1:-1]
    for _ in range(_FEW_LEVELS):
        if not braces:
            return True
        braces = braces.replace("{}", "")
    return not braces


_ONLY_BRACES = {code: None for code in range(128) if chr(code) not in "{}"}
_FEW_LEVELS = 8


def quote_unless_dictionary(content: str) -> str:
    """`content` as the value of a frontend attribute or a backend_config."""
    return content if is_dictionary(content) else quote_string(content)


@memoized
def parse_string_or_dictionary(text: str) -> str:
    """The content of a string, or a brace-balanced `{…}` as it stands."""
    return text if is_dictionary(text) else parse_string(text)


_FRONTEND_KEY = pattern(r"([A-Za-z_][\w.\-]*)=", re.A)


def parse_frontend_attributes(text: str) -> dict[str, str]:
    """`{name="value",other={…}}` by name, in order; dictionaries as they stand.

    Where a name is given twice the last value counts. The result is the caller's own.
    """
    return dict(_parse_frontend(text))


@memoized
def _parse_frontend(text: str) -> Mapping[str, str]:
    what = "frontend attributes {name=value,…}"
    result: dict[str, str] = {}
    if not (text.startswith("{") and text.endswith("}")):
        raise malformed(what, text)
    end = len(text) - 1
    position = skip_trivia(text, 1)
    while position < end:
        if result:
            if text[position] != ",":
                raise malformed(what, text)
            position = skip_trivia(text, position + 1)
        key = _FRONTEND_KEY.match(text, position)
        if key is None:
            raise malformed(what, text)
        start = skip_trivia(text, key.end())
        if text.startswith("{", start):
            stop = dictionary_end(text, start)
        else:
            string = _IS_STRING.match(text, start)
            stop = string.end() if string else None
        if stop is None:
            raise HloSyntaxError(f"frontend attribute '{key[1]}' needs a string or {{…}}")
        result[key[1]] = parse_string_or_dictionary(text[start:stop])
        position = skip_trivia(text, stop)
    if position != end:
        raise malformed(what, text)
    return result


def format_frontend_attributes(attributes: Mapping[str, str]) -> str:
    """The map as XLA prints it: sorted by name, values quoted unless they are `{…}`."""
    pairs = (f"{k}={quote_unless_dictionary(v)}" for k, v in sorted(attributes.items()))
    return "{" + ",".join(pairs) + "}"
