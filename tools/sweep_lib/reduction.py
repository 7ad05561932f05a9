"""Smaller texts with the same problem: delta debugging of lines, then of tokens."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\w.\-%]+|\s+|.', re.S)


def reduced(text: str, still_fails: Callable[[str], bool], seconds: float) -> str:
    """The smallest text found in `seconds` that still fails; `text` itself does."""
    deadline = time.monotonic() + seconds
    for split in (_lines, _TOKEN.findall, _lines, _TOKEN.findall):
        text = without_pieces(split(text), still_fails, deadline)
    return text


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def without_pieces(pieces: list[str], still_fails: Callable[[str], bool], deadline: float) -> str:
    """Drop runs of pieces, long ones first, as long as the rest still fails; until `deadline`."""
    length = max(1, len(pieces) // 2)
    while True:
        dropped = False
        start = 0
        while start < len(pieces) and time.monotonic() < deadline:
            rest = pieces[:start] + pieces[start + length :]
            if rest and still_fails("".join(rest)):
                pieces = rest
                dropped = True
            else:
                start += length
        if time.monotonic() >= deadline or (length == 1 and not dropped):
            return "".join(pieces)
        length = max(1, length // 2)
