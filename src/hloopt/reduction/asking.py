"""Whether a predicate can be trusted: it is asked several times before anything is reduced."""

from __future__ import annotations

import time

from hloopt.diagnostics import HloError
from hloopt.reduction.outcomes import Outcome, Predicate, Verdict
from hloopt.reduction.trials import HANGS, Trials

TIMES = 3
"""How often the input is checked before, and the result after."""
_LEAST_LIMIT = 10.0
_MOST_TIMES_SLOWER = 10
"""A candidate may take this many times as long as the input did, and `_LEAST_LIMIT` seconds."""
TRIVIAL = "HloModule trivial\n\nENTRY %main () -> pred[] {\n  ROOT %c = pred[] constant(false)\n}\n"


class NotShown(HloError):
    """The input does not show the failure."""


def ask(
    trials: Trials, predicate: Predicate, text: str, name: str, *, trivial: str | None = None
) -> Outcome:
    """The outcome for the input: the failure, always with the same signature.

    Unless a time limit was given, that of `trials` becomes what the input takes, ten times over.
    Raises NotShown where the input does not show the failure, HloError for a predicate that is
    flaky, that cannot tell, or that is true of `trivial`.
    """
    started = time.monotonic()
    first = trials.outcome(text)
    elapsed = time.monotonic() - started
    outcomes = [first, *(trials.outcome(text, again=True) for _ in range(TIMES - 1))]
    shown = sum(outcome.is_shown for outcome in outcomes)
    failure = predicate.describe()
    if len({*map(_key, outcomes)}) > 1:
        raise HloError(
            f"{name}: the predicate is flaky: of {TIMES} trials {shown} showed that {failure}",
            help="make it deterministic: fix seeds, wait for what runs in the background",
        )
    if first.verdict is Verdict.UNKNOWN:
        raise HloError(f"{name}: the predicate cannot tell: {first.detail}")
    if not first.is_shown:
        raise _not_shown(first, name, failure, trials.limit.seconds)
    if trivial is not None and _key(trials.outcome(trivial)) == _key(first):
        raise HloError(
            f"{name}: there is nothing to reduce: a module with one constant shows it, too",
            help=f"is the predicate about the module? It is that {failure}",
        )
    if not trials.limit.is_shown and trials.adapts:
        seconds = max(_LEAST_LIMIT, _MOST_TIMES_SLOWER * elapsed)
        trials.limit = trials.limit._replace(seconds=seconds)
    return outcomes[-1]


def _key(outcome: Outcome) -> tuple[Verdict, str]:
    return outcome.verdict, outcome.signature


def _not_shown(outcome: Outcome, name: str, failure: str, seconds: float) -> NotShown:
    if outcome.signature == HANGS:
        return NotShown(
            f"{name}: no answer after {seconds:g} s",
            help="--time-limit gives it longer; if not to end is the failure: --hangs TIME",
        )
    return NotShown(f"{name} does not show it: in {TIMES} trials it was not so that {failure}")


def shown_again(trials: Trials, text: str, signature: str) -> int:
    """How many of `TIMES` further trials show the failure."""
    outcomes = [trials.outcome(text, again=True) for _ in range(TIMES)]
    return sum(o.is_shown and o.signature == signature for o in outcomes)
