"""The result of a bisection of XLA's passes, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hloopt.compilers.bisection import Alone, Bisected, Verdict
from hloopt.diagnostics import counted
from hloopt.dumps.chain import Step


def lines_of(bisected: Bisected) -> Iterator[str]:
    """The lines of a bisection as text."""
    found = bisected.found
    judged = len(found.judged) - len(found.skipped)
    programs = counted(found.programs, "stage")
    extent = f"{judged:,} of {programs} that changed the program were judged"
    if found.verdict is Verdict.EQUAL:
        yield f"equal: {extent}"
    elif found.verdict is Verdict.UNKNOWN:
        yield f"cannot tell: {found.reason or 'no stage can be judged'}"
    else:
        yield _culprit(bisected)
        yield f"difference: {found.reason}"
        if bisected.alone is not None:
            yield f"alone: {_alone(bisected.alone)}"
        yield extent + ("; a difference was taken to persist" if found.is_halved else "")
    for each in found.skipped:
        yield f"not judged: {_named(each.step)}: {each.reason}"
    for note in dict.fromkeys(note for each in found.judged for note in each.notes):
        yield f"not compared: {note}"


def _culprit(bisected: Bisected) -> str:
    suspects = bisected.found.suspects
    if len(suspects) > 1:
        return f"pass: one of {', '.join(map(_named, suspects))}"
    if bisected.name is None:
        return f"pass: none that has dumps; the difference is there at {_named(suspects[0])}"
    return f"pass: {bisected.name}, in {suspects[0].stage.pipeline}, dump {_number(suspects[0])}"


def _alone(alone: Alone) -> str:
    if alone.verdict is Verdict.DIFFERENT:
        return f"the pass reproduces it, run {alone.place} of {alone.runs:,}"
    if alone.verdict is Verdict.EQUAL:
        return f"the pass does not reproduce it: {alone.reason}"
    return f"cannot tell: {alone.reason}"


def _named(step: Step) -> str:
    return f"{_number(step)} {step.maker}"


def _number(step: Step) -> str:
    return f"{step.stage.number:04}"


def bisected_to_json(bisected: Bisected, shown_by: str | None) -> dict[str, Any]:
    """As plain data, with the command that shows the difference."""
    found, alone = bisected.found, bisected.alone
    return {
        "verdict": {"different": "found"}.get(found.verdict.value, found.verdict.value),
        "pass": bisected.name,
        "suspects": [_step_to_json(step) for step in found.suspects],
        "reason": found.reason,
        "alone": None if alone is None else {**alone._asdict(), "verdict": alone.verdict.value},
        "stages": found.programs,
        "judged": [
            {**_step_to_json(each.step), "verdict": each.verdict.value, "reason": each.reason}
            for each in found.judged
        ],
        "assumes_persistence": found.is_halved,
        "command": shown_by,
        "notes": list(dict.fromkeys(note for each in found.judged for note in each.notes)),
    }


def _step_to_json(step: Step) -> dict[str, Any]:
    return {"number": step.number, "stage": step.stage.label, "pass": step.stage.after}
