"""Directives of a golden test that decide whether it runs, and how it is to end.

| written | means |
| --- | --- |
| `// REQUIRES: a, b` | it runs where each of the conditions holds |
| `// UNSUPPORTED: a, b` | it does not run where one of them holds |
| `// XFAIL: a, b` | where one of them holds it is expected to fail; `*` holds everywhere |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import NamedTuple

from hloopt.diagnostics import Source, Span
from hloopt.golden.conditions import holds
from hloopt.patterns import pattern

_DIRECTIVE = pattern(r"^[ \t]*//[ \t]*(REQUIRES|UNSUPPORTED|XFAIL):[ \t]*(.*?)[ \t\r]*$", re.M)


class Expected(NamedTuple):
    """The plan for a test."""

    unsupported: str | None
    """The reason why it does not run; None where it does."""
    fails: bool
    """Whether it is expected to fail."""


def expected(source: Source, features: Set[str]) -> Expected:
    """The plan for a test on a machine with `features`. Raises GoldenError."""
    unsupported: str | None = None
    fails = False
    for name, condition, span in _conditions(source):
        is_met = condition == "*" or holds(condition, features, span)
        if name == "XFAIL":
            fails = fails or is_met
        elif is_met is (name == "UNSUPPORTED"):
            unsupported = unsupported or f"{name}: {condition}"
    return Expected(unsupported, fails)


def _conditions(source: Source) -> Iterator[tuple[str, str, Span]]:
    for match in _DIRECTIVE.finditer(source.text):
        span = Span(source, match.start(2), match.end(2))
        for condition in match[2].split(","):
            yield match[1], condition.strip(), span
