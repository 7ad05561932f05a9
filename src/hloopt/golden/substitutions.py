"""Substitutions in RUN lines: lit's, as far as they have a meaning here.

| written | means |
| --- | --- |
| `%s` | the test file |
| `%S`, `%p` | its folder |
| `%t` | the name of a temporary file of this test |
| `%T` | the folder of that |
| `%{NAME}` | the value that `-D NAME=VALUE` gives |
| `%%` | `%` |
| `%if CONDITION %{ … %} %else %{ … %}` | one part or the other; `%else` may be left out |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from hloopt.diagnostics import Span, did_you_mean
from hloopt.golden.conditions import holds
from hloopt.golden.errors import GoldenError
from hloopt.patterns import pattern

_WORD = pattern(r"%(?:\{([\w:./-]+)\}|([sSptT%]))")


@dataclass(frozen=True, slots=True)
class Substitutions:
    """The values of what stands behind `%` in a test's RUN lines."""

    test: Path
    temporary: Path
    parameters: Mapping[str, str] = field(default_factory=dict)

    def apply(self, word: str) -> str:
        """`word` with every substitution replaced, whatever spaces the paths hold.

        Raises GoldenError for a parameter without a value.
        """
        values = {
            "s": str(self.test),
            "S": str(self.test.parent),
            "p": str(self.test.parent),
            "t": str(self.temporary),
            "T": str(self.temporary.parent),
            "%": "%",
        }
        return _WORD.sub(lambda found: values.get(found[2]) or self._parameter(found[1]), word)

    def _parameter(self, name: str) -> str:
        value = self.parameters.get(name)
        if value is None:
            raise GoldenError(
                f"%{{{name}}} has no value",
                help=did_you_mean(name, self.parameters) or f"give it: -D {name}=VALUE",
            )
        return value


_IF = pattern(r"%if\s+(.*?)\s*%\{", re.S)
_ELSE = pattern(r"\s*%else\s*%\{")
_BRACES = pattern(r"%\{(?![\w:./-]+\})|%\}")


def choose(text: str, features: Set[str], span: Span) -> str:
    """A RUN line with one part of each `%if`, whatever is in it. Raises GoldenError."""

    def is_met(condition: str) -> bool:
        return holds(condition, features, span)

    return _choose(text, is_met, span, _DEEPEST)


_DEEPEST = 20
"""The most parts of `%if` in each other."""


def _choose(text: str, is_met: Callable[[str], bool], span: Span, depth: int) -> str:
    parts: list[str] = []
    position = 0
    while True:
        match = _IF.search(text, position)
        if match is None:
            return "".join(parts) + text[position:]
        parts.append(text[position : match.start()])
        end = _closing(text, match.end(), span)
        chosen, position = text[match.end() : end], end + 2
        other = ""
        if (behind := _ELSE.match(text, position)) is not None:
            end = _closing(text, behind.end(), span)
            other, position = text[behind.end() : end], end + 2
        if not depth:
            raise GoldenError(f"more than {_DEEPEST} %if in each other", span=span)
        part = chosen if is_met(match[1]) else other
        parts.append(_choose(part, is_met, span, depth - 1).strip())


def _closing(text: str, start: int, span: Span) -> int:
    """The `%}` of a part that begins at `start`."""
    depth = 1
    for match in _BRACES.finditer(text, start):
        depth += 1 if match[0] == "%{" else -1
        if not depth:
            return match.start()
    raise GoldenError("a part of %if has no end", span=span, help="write %if CONDITION %{ … %}")
