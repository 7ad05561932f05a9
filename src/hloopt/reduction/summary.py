"""Reductions and bisections as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.diagnostics import counted
from hloopt.reduction.asking import TIMES
from hloopt.reduction.bisection import Culprit
from hloopt.reduction.reducer import Size
from hloopt.reduction.run import Reduced

_MOST_OTHERS = 3
_MOST_KINDS = 6


def lines_of(reduced: Reduced, output: str) -> Iterator[str]:
    """The lines of the summary of a reduction."""
    found = reduced.reduction
    before, after = found.before, found.after
    trials = counted(reduced.trials, "trial")
    yield (
        f"{output}: {before.instructions:,} → {counted(after.instructions, 'instruction')}, "
        f"{before.characters:,} → {counted(after.characters, 'character')} "
        f"({trials}, {reduced.seconds:.1f} s)"
    )
    if found.failure.detail:
        yield f"shows: {found.failure.detail.splitlines()[0]}"
    kinds = [counted(count, *what) for what, count in found.removed.most_common(_MOST_KINDS)]
    if kinds:
        yield f"done: {'; '.join(kinds)}"
    ranked = sorted(found.others.items(), key=lambda item: -item[1][0])
    for signature, (count, _) in ranked[:_MOST_OTHERS]:
        yield f"set aside: another failure, met {counted(count, 'time')}: {signature}"
    if len(ranked) > _MOST_OTHERS:
        more = counted(len(ranked) - _MOST_OTHERS, "other kind", "other kinds")
        yield f"set aside: {more} of failure"
    if not found.is_complete:
        yield "the budget ran out: --resume goes on"
    if reduced.shown_again < TIMES:
        shown = f"of {TIMES} last trials {reduced.shown_again} showed it"
        yield f"warning: the predicate is flaky: {shown}"
    yield f"to see it: {reduced.command}"


def reduced_to_json(reduced: Reduced, file: str, output: str) -> dict[str, object]:
    """A reduction as JSON."""
    found = reduced.reduction
    return {
        "file": file,
        "output": output,
        "before": _size(found.before),
        "after": _size(found.after),
        "failure": found.failure.detail,
        "signature": found.failure.signature,
        "command": reduced.command,
        "trials": reduced.trials,
        "seconds": reduced.seconds,
        "is_complete": found.is_complete,
        "shown_again": reduced.shown_again,
        "removed": {what.many: count for what, count in found.removed.items()},
        "set_aside": [
            {"signature": signature, "count": count, "text": text}
            for signature, (count, text) in found.others.items()
        ],
    }


def _size(size: Size) -> dict[str, int]:
    return size._asdict()


def culprit_lines(culprit: Culprit, command: str) -> Iterator[str]:
    """The lines about the culprit of a bisection."""
    place = f"its run {culprit.run_of_pass}, run {culprit.run} of all passes"
    if culprit.iteration is not None:
        place += f", iteration {culprit.iteration} of its fixpoint"
    yield f"pass: {culprit.pass_name} ({place})"
    application = culprit.application
    if application is None:
        yield "application: none: it shows before, or without, any application of this run"
    else:
        yield (f"application: {culprit.number}, %{application.instruction}: {application.what}")
    if culprit.outcome.detail:
        yield f"shows: {culprit.outcome.detail.splitlines()[0]}"
    yield f"to see it: {command}"


def culprit_to_json(culprit: Culprit, file: str, command: str) -> dict[str, object]:
    """The culprit of a bisection as JSON."""
    application = culprit.application
    return {
        "file": file,
        "pass": culprit.pass_name,
        "run": culprit.run,
        "run_of_pass": culprit.run_of_pass,
        "iteration": culprit.iteration,
        "application": culprit.number,
        "instruction": None if application is None else application.instruction,
        "what": None if application is None else application.what,
        "failure": culprit.outcome.detail,
        "command": command,
    }
