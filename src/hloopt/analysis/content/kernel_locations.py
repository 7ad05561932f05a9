"""Locations in the bodies of custom calls: `loc(…)` in the text of MLIR, of a Triton kernel, say.

MLIR as bytecode holds its locations, too, but cannot be read here: bodies in it count as they are.
"""

from __future__ import annotations

from hloopt.patterns import pattern

_BEGIN = pattern(r"(?:#loc\w* = | ?(?<![\w.#$%@]))loc\(")
_NEXT = pattern(r'\\*"|[()]')


def without_locations(body: str) -> str:
    """The text of a body without the locations of MLIR and their definitions. O(length)."""
    if "loc(" not in body:
        return body
    kept: list[str] = []
    position = 0
    while (begin := _BEGIN.search(body, position)) is not None:
        end = _end(body, begin.end())
        if end is None:
            break
        kept.append(body[position : begin.start()])
        position = end
    return "".join((*kept, body[position:]))


def _end(body: str, position: int) -> int | None:
    """The place behind the parenthesis that closes the one before `position`; None without one.

    Parentheses in strings do not count; quotes may be escaped as often as the body is quoted.
    """
    depth, quote = 1, ""
    for token in _NEXT.finditer(body, position):
        text = token[0]
        if quote:
            quote = "" if text == quote else quote
        elif text.endswith('"'):
            quote = text
        else:
            depth += 1 if text == "(" else -1
            if not depth:
                return token.end()
    return None
