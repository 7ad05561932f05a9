"""Protocol buffers in their text form, read without a schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, Union

from hloopt.diagnostics import HloError
from hloopt.ir.attributes.values import parse_string
from hloopt.patterns import pattern

Value: TypeAlias = Union[str, "Fields"]


class Fields(dict[str, list[Value]]):
    """The values of each field in their order: nested messages, or the text of anything else."""

    line = 1
    """The line on which the message begins."""


_TOKEN = pattern(
    r"""(?P<skip>\s+|\#[^\n]*)|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<word>[\w.+-]+)|(?P<mark>[{}<>\[\]:,;/])"""
)
_CLOSING = {"{": "}", "<": ">"}
_DEEPEST = 100


class _Token(NamedTuple):
    kind: str | None
    text: str
    offset: int


def parse_text_proto(text: str, name: str) -> Fields:
    """The fields of a message; strings without quotes, their escapes read.

    Raises HloError, with the line, for what is not a text form. O(length).
    """
    return _Reader(text, name, list(_tokens(text, name))).message("", 0)


def _tokens(text: str, name: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _error(text, name, position, f"no token begins with {text[position]!r}")
        if match.lastgroup != "skip":
            yield _Token(match.lastgroup, match[0], position)
        position = match.end()


def _error(text: str, name: str, offset: int, message: str) -> HloError:
    line = text.count("\n", 0, offset) + 1
    return HloError(f"{name}:{line}: {message}", help="this is not a protocol buffer in text form")


@dataclass(slots=True)
class _Reader:
    text: str
    name: str
    tokens: list[_Token]
    position: int = 0
    counted: int = 1
    """The line of the offset `counted_to`."""
    counted_to: int = 0

    def message(self, end: str, depth: int) -> Fields:
        """Fields up to the token `end`, which is left behind; "": up to the end of the text."""
        if depth > _DEEPEST:
            raise self._unexpected("no deeper nesting")
        fields = Fields()
        fields.line = self._line()
        while (token := self._next("a field" if end else "")) is not None:
            if token.text == end:
                return fields
            if token.kind != "word":
                self.position -= 1
                raise self._unexpected("the name of a field")
            values = fields.setdefault(token.text, [])
            has_colon = self._take(":")
            if self._take("["):
                while not self._take("]"):
                    values.append(self._value(depth, has_colon=True))
                    self._take(",")
            else:
                values.append(self._value(depth, has_colon=has_colon))
            self._take(",") or self._take(";")
        return fields

    def _value(self, depth: int, *, has_colon: bool) -> Value:
        token = self._next("a value")
        assert token is not None
        if token.text in _CLOSING:
            return self.message(_CLOSING[token.text], depth + 1)
        if has_colon and token.kind == "word":
            return token.text
        if has_colon and token.kind == "string":
            parts = [token.text]
            while self.position < len(self.tokens) and self.tokens[self.position].kind == "string":
                parts.append(self.tokens[self.position].text)
                self.position += 1
            return "".join(parse_string(f'"{part[1:-1]}"') for part in parts)
        self.position -= 1
        raise self._unexpected("a value")

    def _line(self) -> int:
        """The line of the token that was taken last; 1 before the first. O(length since the line
        that was asked for before)."""
        if not self.position:
            return 1
        offset = self.tokens[self.position - 1].offset
        self.counted += self.text.count("\n", self.counted_to, offset)
        self.counted_to = offset
        return self.counted

    def _take(self, text: str) -> bool:
        is_next = (
            self.position < len(self.tokens)
            and self.tokens[self.position].text == text
            and self.tokens[self.position].kind == "mark"
        )
        self.position += is_next
        return is_next

    def _next(self, wanted: str) -> _Token | None:
        """The next token; None at the end, which is an error where something is `wanted`."""
        if self.position == len(self.tokens):
            if wanted:
                raise self._unexpected(wanted)
            return None
        self.position += 1
        return self.tokens[self.position - 1]

    def _unexpected(self, wanted: str) -> HloError:
        if self.position >= len(self.tokens):
            return _error(self.text, self.name, len(self.text), f"expected {wanted}, not the end")
        token = self.tokens[self.position]
        return _error(
            self.text, self.name, token.offset, f"expected {wanted}, found {token.text[:40]}"
        )
