"""Conditions on features: those of `REQUIRES`, `UNSUPPORTED`, `XFAIL` and `%if`.

A condition is a feature's name, `{{REGEX}}` for any feature that it matches, `true` or `false`,
with `!`, `&&`, `||` and parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Set

from hloopt.diagnostics import Span
from hloopt.golden.errors import GoldenError
from hloopt.patterns import pattern

_TOKEN = pattern(r"\s*(?:(\{\{.+?\}\}|[\w.+=-]+)|(&&|\|\||[!()]))")


def holds(condition: str, features: Set[str], span: Span) -> bool:
    """Whether a condition holds with these features. Raises GoldenError, pointing at `span`."""
    reader = _Reader(condition, features, span)
    result = reader.any_of()
    if reader.token:
        raise reader.error()
    return result


class _Reader:
    """Recursive descent; `token` is the next one, "" at the end."""

    def __init__(self, text: str, features: Set[str], span: Span) -> None:
        self._text = text.strip()
        self._features = features
        self._span = span
        self._position = 0
        self._depth = 0
        self.token = ""
        self._advance()

    def any_of(self) -> bool:
        result = self._all_of()
        while self.token == "||":
            self._advance()
            result = self._all_of() or result
        return result

    def _all_of(self) -> bool:
        result = self._one()
        while self.token == "&&":
            self._advance()
            result = self._one() and result
        return result

    def _one(self) -> bool:
        is_negated = False
        while self.token == "!":
            is_negated = not is_negated
            self._advance()
        token = self.token
        if token == "(":
            result = self._in_parentheses()
        elif token and token not in ("&&", "||", ")"):
            self._advance()
            result = self._has(token)
        else:
            raise self.error()
        return result != is_negated

    def _in_parentheses(self) -> bool:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.error()
        self._advance()
        result = self.any_of()
        if self.token != ")":
            raise self.error()
        self._advance()
        self._depth -= 1
        return result

    def _has(self, name: str) -> bool:
        if name in ("true", "false"):
            return name == "true"
        if not name.startswith("{{"):
            return name in self._features
        try:
            wanted = re.compile(name[2:-2])
        except re.error as error:
            raise GoldenError(
                f"{name} is no regular expression: {error}", span=self._span
            ) from None
        return any(wanted.fullmatch(feature) for feature in self._features)

    def _advance(self) -> None:
        if self._position == len(self._text):
            self.token = ""
            return
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            self.token = self._text[self._position :]
            raise self.error()
        self.token = match[1] or match[2]
        self._position = match.end()

    def error(self) -> GoldenError:
        found = f"'{self.token}'" if self.token else "the end"
        return GoldenError(
            f"a condition has {found} where something else is expected: {self._text}",
            span=self._span,
            help="write features with !, &&, || and (): xla && !system-windows",
        )


_DEEPEST = 50
"""The most parentheses in each other."""
