"""White space and comments, which HLO text may hold between any two tokens."""

from __future__ import annotations

import re

from hloopt.patterns import pattern

_TRIVIA = pattern(r"(?:[ \t\r\n]++|/\*.*?\*/|//[^\r\n]*+)*+", re.S)


def skip_trivia(text: str, position: int) -> int:
    """The first position at or after `position` that is no white space or comment."""
    return _TRIVIA.match(text, position).end()  # type: ignore[union-attr]  # always matches
