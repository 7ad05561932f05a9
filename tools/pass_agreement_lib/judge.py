"""The verdict on one run of a pass: ours on the program that XLA's was given."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from hloopt.compilers.comparing import Compared, Verdict, compare_with
from hloopt.compilers.isolation import Run
from hloopt.diagnostics import Defect, HloError, PassFailure, PassRefused
from hloopt.equivalence import RunSettings
from hloopt.interpreter.limits import Deadline
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module
from pass_agreement_lib.chain import PassRun

_SECONDS = 5.0
_STEPS = 1_000_000
_MEMORY = 1 << 30


class Kind(StrEnum):
    """The kinds of verdicts, in the order of the table."""

    NEITHER = "changed by neither"
    TEXT = "equal text"
    NAMES = "equal up to names"
    ANNOTATIONS = "equal up to annotations"
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNKNOWN = "cannot be told"
    FAILED = "failed"
    """Our pass ended in an error."""


class Judged(NamedTuple):
    """A verdict, and for whom it is not the same program who changed it."""

    kind: Kind
    reason: str
    ours: str = ""
    """Our text, where it is not XLA's; the reason says why there is none."""
    only: str = ""
    """"ours" or "XLA" where one of the two left the program as it was."""


_KINDS = {
    Verdict.TEXT: Kind.TEXT,
    Verdict.NAMES: Kind.NAMES,
    Verdict.ANNOTATIONS: Kind.ANNOTATIONS,
    Verdict.EQUIVALENT: Kind.EQUIVALENT,
    Verdict.DIFFERENT: Kind.DIFFERENT,
    Verdict.UNKNOWN: Kind.UNKNOWN,
}


def judge(run: PassRun, passes: str) -> Judged:
    """Compare `passes` with a run of XLA's. Seconds at most, most of them in the interpreter."""
    limits = RunSettings(seeds=2, steps=_STEPS, memory=_MEMORY, deadline=Deadline(_SECONDS))
    pipeline = parse_passes(passes, find_pipeline)
    theirs = Run(run.name, run.pipeline, run.before, run.after)
    try:
        found = compare_with(theirs, pipeline, limits)
    except PassRefused as error:
        return Judged(Kind.UNKNOWN, f"our pass refuses: {error.message}")
    except (PassFailure, Defect) as error:
        problem = next(iter(verify_module(parse_module(run.before), ANY_TARGET)), None)
        if problem is not None:
            return Judged(
                Kind.UNKNOWN, f"XLA's pass was given an invalid module: {problem.message}"
            )
        return Judged(Kind.FAILED, error.message)
    except HloError as error:  # what XLA has between its passes need not be a valid text
        return Judged(Kind.UNKNOWN, error.message)
    if found.verdict is Verdict.TEXT and not (theirs.is_changed or found.is_changed):
        return Judged(Kind.NEITHER, "")
    only = _only(theirs.is_changed, found)
    return Judged(_KINDS[found.verdict], found.reason, print_module(found.ours), only)


def _only(is_changed_by_xla: bool, found: Compared) -> str:
    if is_changed_by_xla == found.is_changed:
        return ""
    return "ours" if found.is_changed else "XLA"
