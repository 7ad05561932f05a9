"""The log of a compile: which passes began, and which pipelines have them."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.patterns import pattern

_BEGUN = pattern(r".*hlo_pass_pipeline\.cc:\d+\] +HLO pass (?P<name>[^\s:].*?)\s*$")
_RUNNING = pattern(r".*hlo_pass_pipeline\.cc:\d+\] +Running HLO pass pipeline on .*?: (?P<name>.+)")


def last_pass(lines: Sequence[str]) -> str | None:
    """The last pass that began; None where none did."""
    found = next(filter(None, map(_BEGUN.match, reversed(lines))), None)
    return None if found is None else found["name"]


def passes_of(lines: Sequence[str]) -> dict[str, set[str]]:
    """The passes and pipelines that ran, each with those that it has if it is a pipeline."""
    parts: dict[str, set[str]] = {}
    pipeline = ""
    for line in lines:
        if match := _RUNNING.match(line):
            pipeline = match["name"]
            parts.setdefault(pipeline, set())
        elif match := _BEGUN.match(line):
            parts.setdefault(match["name"], set())
            parts.setdefault(pipeline, set()).add(match["name"])
    return parts
