"""The base of readers of short texts: selectors, passes with their options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from hloopt.diagnostics import HloError, Source, Span
from hloopt.patterns import pattern

_BLANKS = pattern(r"\s+")
_DEEPEST = 50


class TokenReader:
    """A position in a source, which moves over tokens; every error carries its place.

    Subclasses have a method per rule of their grammar. The first error ends the reading.
    """

    error_class: ClassVar[type[HloError]]

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.position = 0
        self.depth = 0

    # -- places and errors ----------------------------------------------------------------------

    def span(self, start: int, end: int) -> Span:
        """A span of at least one character, so that the end of the text can be marked, too."""
        return Span(self.source, start, max(end, start + 1))

    def error(
        self, message: str, start: int, end: int, help: str | None = None, code: str | None = None
    ) -> HloError:
        return self.error_class(message, span=self.span(start, end), help=help, code=code)

    @contextmanager
    def deeper(self, message: str, start: int, end: int, code: str | None = None) -> Iterator[None]:
        """A level of nesting around what is read within; raises `error` where it is too deep."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(message, start, end, code=code)
        yield
        self.depth -= 1

    # -- tokens ---------------------------------------------------------------------------------

    @property
    def is_at_end(self) -> bool:
        return self.position == len(self.text)

    def skip(self) -> None:
        """Move over blanks."""
        self.read(_BLANKS)

    def read(self, token: re.Pattern[str]) -> re.Match[str] | None:
        """The match of a token that stands right here, which is then read; None without one."""
        match = token.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def accept(self, token: str | re.Pattern[str]) -> bool:
        """Whether a token follows, which is then read with the blanks behind it.

        Blanks before it are read in any case.
        """
        self.skip()
        if not isinstance(token, str):
            if self.read(token) is None:
                return False
        elif self.text.startswith(token, self.position):
            self.position += len(token)
        else:
            return False
        self.skip()
        return True
