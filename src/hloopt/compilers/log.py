"""The log of a compile: which passes began, and which pipelines have them."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.dumps.logs import events_of
from hloopt.patterns import pattern

_BEGUN = pattern(r".*hlo_pass_pipeline\.cc:\d+\] +HLO pass (?P<name>[^\s:].*?)\s*$")


def last_pass(lines: Sequence[str]) -> str | None:
    """The last pass that began; None where none did."""
    found = next(filter(None, map(_BEGUN.match, reversed(lines))), None)
    return None if found is None else found["name"]


def passes_of(lines: Sequence[str]) -> dict[str, set[str]]:
    """The passes and pipelines that ran, each with those that it has if it is a pipeline."""
    parts: dict[str, set[str]] = {}
    for event in events_of(lines):
        passes = parts.setdefault(event.pipeline, set())
        if event.name:
            passes.add(event.name)
            parts.setdefault(event.name, set())
    return parts
