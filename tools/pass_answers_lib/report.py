"""The table of passes on programs made for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hloopt.diagnostics import counted
from pass_answers_lib.subject import CHANGED, DIED, EQUAL, EXPLAINED, LOST

_COLUMNS = (CHANGED, EQUAL, EXPLAINED, DIED)
_BEGIN = f"{EXPLAINED}: "


def programs_of(outcomes: Counter[str]) -> int:
    """The number of programs behind some outcomes."""
    asides = {CHANGED, *(key for key in outcomes if key.startswith(_BEGIN))}
    return sum(count for key, count in outcomes.items() if key not in asides)


def row(name: str, outcomes: Counter[str]) -> str:
    """The outcomes of a pass in words."""
    parts = [f"{outcomes[column]:,} {column}" for column in (*_COLUMNS, LOST)]
    return f"{name}: {', '.join(parts)}"


def table(found: Mapping[str, Counter[str]]) -> str:
    """A line for each pass: programs, those that XLA changes, and verdicts."""
    lines = [
        "| pass | programs | " + " | ".join((*_COLUMNS, "different")) + " |",
        "| --- " + "| ---: " * (len(_COLUMNS) + 2) + "|",
    ]
    for name, outcomes in sorted(found.items()):
        programs = programs_of(outcomes)
        counts = [outcomes[column] for column in _COLUMNS]
        counts.append(programs - sum(counts[1:]))
        cells = " | ".join(f"{count:,}" if count else "" for count in counts)
        lines.append(f"| {name.replace('_', '-')} | {programs:,} | {cells} |")
    return "\n".join(lines)


def causes_of(found: Mapping[str, Counter[str]]) -> str:
    """A line for each cause of differences."""
    lines = [
        f"- {name.replace('_', '-')}: {key.removeprefix(_BEGIN)} ({counted(count, 'program')})."
        for name, outcomes in sorted(found.items())
        for key, count in sorted(outcomes.items())
        if key.startswith(_BEGIN)
    ]
    return "\n".join(lines) or "None."
