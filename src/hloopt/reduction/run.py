"""A reduction from the input to the file that is written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from hloopt.diagnostics import HloError
from hloopt.files import write_whole
from hloopt.reduction.asking import TIMES, TRIVIAL, ask, shown_again
from hloopt.reduction.journal import Journal
from hloopt.reduction.outcomes import Outcome, Predicate
from hloopt.reduction.reducer import Progress, Reducer, Reduction
from hloopt.reduction.trials import TimeLimit, Trials


@dataclass(frozen=True, kw_only=True)
class ReduceSettings:
    """Settings of a reduction."""

    limit: TimeLimit
    adapts: bool = True
    """Whether the limit becomes ten times what the input takes."""
    jobs: int = 1
    budget: float | None = None
    """Seconds that it may take; then the smallest module so far is the result."""
    verify: bool = True
    resume: bool = False


@dataclass
class Reduced:
    """A reduction that was made, with how to see the failure."""

    reduction: Reduction
    trials: int
    seconds: float
    command: str
    shown_again: int
    """How many of `asking.TIMES` last trials showed the failure."""


def journal_path(output: str) -> str:
    """The file beside an output that `--resume` needs."""
    return f"{output}.trials"


def reduce_file(
    text: str,
    name: str,
    predicate: Predicate,
    output: str,
    settings: ReduceSettings,
    on_progress: Callable[[Progress], None] | None = None,
) -> Reduced:
    """Reduce a module, and write the smallest one so far to `output` each time there is one.

    A process that is ended leaves the best module behind, and the journal by which `resume` goes on
    where it was. Raises NotShown, or HloError for a predicate that cannot be trusted.
    """
    started = time.monotonic()
    subject = sha256(f"{predicate!r}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
    journal = Journal(journal_path(output), subject, resume=settings.resume)
    command = predicate.command(output)
    with Trials(
        predicate, settings.limit, settings.jobs, journal, adapts=settings.adapts
    ) as trials:
        try:
            failure = ask(trials, predicate, text, name, trivial=TRIVIAL)
        except HloError:
            journal.remove()
            raise
        trials.narrow(text, failure)

        def write(smaller: str, shown: Outcome) -> None:
            write_whole(output, _with_note(smaller, shown, command, name))

        reducer = Reducer(
            trials,
            failure,
            verify=settings.verify and predicate.needs_valid,
            deadline=None if settings.budget is None else started + settings.budget,
            on_smaller=write,
            on_trial=on_progress,
        )
        reduction = reducer.reduce(text)
        write(reduction.text, reduction.failure)
        count = trials.count
        again = shown_again(trials, reduction.text, failure.signature)
    if reduction.is_complete and again == TIMES:
        journal.remove()
    elapsed = time.monotonic() - started
    return Reduced(reduction, count, elapsed, command, again)


def _with_note(text: str, failure: Outcome, command: str, name: str) -> str:
    """A reduced module below lines that say where it is from, and how to see the failure."""
    what = failure.detail.partition("\n")[0]
    lines = [f"Reduced from {os.path.basename(name)} by hloopt reduce.", what]
    lines.append(f"To see it: {command}")
    head = "".join(f"// {line}\n" for line in lines if line)
    return f"{head}\n{text.rstrip()}\n"
