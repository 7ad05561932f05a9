"""A position in HLO source, and the tokens that can be read there."""

from __future__ import annotations

from hloopt.diagnostics import HloSyntaxError, Source, Span
from hloopt.ir.attributes.text import scan_literal, scan_value
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.shapes.shape_parser import parse_shape, scan_shape
from hloopt.ir.trivia import skip_trivia
from hloopt.patterns import pattern

IDENTIFIER = r"[A-Za-z_][\w.\-]*"

_NAME = pattern(rf"(%?)({IDENTIFIER})")
_ATTRIBUTE_NAME = pattern(r"([A-Za-z_][\w.\-]*)=")
_WORD_AT = pattern(r"[\w.\-%]+|\S")
_SHAPE_AHEAD = pattern(r"\(|[a-z][a-z0-9]*\s*\[|b\s*\(")
_INTEGER = pattern(r"-?\d+")
_LONGEST_INTEGER = 20  # digits: more do not fit into 64 bits

RESERVED_NAMES = frozenset(
    (
        *("true", "false", "inf", "nan", "HloModule", "ENTRY", "ROOT", "maximal", "replicated"),
        *("manual", "last_tile_dim_replicate", "shard_as", "shard_like", "unknown", "unreduced"),
        *("FileNames", "FunctionNames", "FileLocations", "StackFrames"),
    )
)
"""Words that cannot be a bare name."""


class Cursor:
    """Reads tokens of `source` from `position` on; every error carries its place."""

    __slots__ = ("position", "source", "text")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.position = 0

    def error(
        self, message: str, start: int | None = None, end: int | None = None, *,
        help: str | None = None, code: str | None = None,
    ) -> HloSyntaxError:  # fmt: skip
        """An error at `start` (default: here), marking one token unless `end` is given."""
        if start is None:
            start = self.position
        start = min(start, len(self.text))
        if end is None:
            token = _WORD_AT.match(self.text, start)
            end = token.end() if token else start + 1
        return HloSyntaxError(message, span=Span(self.source, start, end), help=help, code=code)

    def check_characters(self) -> None:
        """Refuse what cannot be HLO text at all."""
        if "\0" in self.text:
            raise self.error(
                "a NUL byte is not allowed in HLO text: is this a binary file?",
                self.text.index("\0"),
                code="HLO002",
            )

    def after_trivia(self, position: int) -> int:
        return skip_trivia(self.text, position)

    def skip(self) -> None:
        """Move over white space and comments."""
        self.position = skip_trivia(self.text, self.position)

    def at_end(self) -> bool:
        return self.position >= len(self.text)

    def looking_at(self, token: str) -> bool:
        return self.text.startswith(token, self.position)

    def accept(self, token: str) -> bool:
        """Move over `token` and what follows it up to the next token, if it stands here."""
        if not self.text.startswith(token, self.position):
            return False
        self.position = skip_trivia(self.text, self.position + len(token))
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.error(f"expected '{token}', found {self.found()}")

    def found(self) -> str:
        """The token at the cursor, for messages."""
        token = _WORD_AT.match(self.text, self.position)
        return f"'{token[0][:40]}'" if token else "the end of the text"

    def peek_word(self, word: str) -> bool:
        if not self.looking_at(word):
            return False
        following = self.text[self.position + len(word) : self.position + len(word) + 1]
        return not (following.isalnum() or following in ("_", ".", "-", "=", ":"))

    def accept_word(self, word: str) -> bool:
        return self.peek_word(word) and self.accept(word)

    def word(self, word: str) -> None:
        if not self.accept_word(word):
            raise self.error(f"expected '{word}', found {self.found()}")

    def name(self, what: str) -> str:
        """A name; the sigil in front or the colon behind, either of which marks it, is dropped."""
        match = _NAME.match(self.text, self.position)
        if match is None:
            raise self.error(f"expected {what}, found {self.found()}")
        name = match[2]
        has_colon = not match[1] and self.text.startswith(":", match.end())
        is_marked = match[1] or has_colon
        if (not is_marked and name in RESERVED_NAMES) or name in ELEMENT_TYPES:
            raise self.error(f"'{name}' is a reserved word and cannot be {what}", code="HLO112")
        self.position = match.end() + has_colon
        return name

    def attribute_name(self) -> str:
        match = _ATTRIBUTE_NAME.match(self.text, self.position)
        if match is None:
            raise self.error(f"expected an attribute (name=value), found {self.found()}")
        self.position = skip_trivia(self.text, match.end())
        return match[1]

    def value(self, key: str) -> str:
        """The text of attribute `key`'s value."""
        start = self.position
        try:
            self.position = scan_value(self.text, start, key)
        except HloSyntaxError as error:
            raise self.error(error.message, start, help=error.help, code="HLO108") from None
        return self.text[start : self.position]

    def string(self) -> str:
        """The content of a string in quotes."""
        from hloopt.ir.attributes.values import parse_string

        start = self.position
        try:
            return parse_string(self.value("a string"))
        except HloSyntaxError as error:
            raise self.error(error.message, start) from None

    def literal(self) -> str:
        start = self.position
        try:
            self.position = scan_literal(self.text, start)
        except HloSyntaxError as error:
            raise self.error(error.message, start, code="HLO110") from None
        return self.text[start : self.position]

    def integer(self) -> int:
        match = _INTEGER.match(self.text, self.position)
        if match is None:
            raise self.error(f"expected an integer, found {self.found()}")
        if match.end() - match.start() > _LONGEST_INTEGER:
            raise self.error("an integer has at most 64 bits")
        self.position = match.end()
        return int(match[0])

    def shape_ahead(self) -> bool:
        return _SHAPE_AHEAD.match(self.text, self.position) is not None

    def shape(self) -> Shape:
        start = self.position
        try:
            _, self.position = scan_shape(self.text, start)
            return parse_shape(self.text[start : self.position])
        except HloSyntaxError as error:
            raise self.error(error.message, start, help=error.help, code="HLO109") from None

    def signature_parameter(self) -> None:
        """`name: shape`; the name is not looked at, as in XLA."""
        match = _NAME.match(self.text, self.position)
        if match is None:
            raise self.error(f"expected a parameter name, found {self.found()}")
        self.position = skip_trivia(self.text, match.end())
        if not match[1]:
            self.accept(":")  # with a sigil, the colon would be a token of its own
        self.shape()
