"""Passes of ours against one of XLA's, on the same module."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hloopt.compilers.isolation import Run
from hloopt.equivalence import RunSettings
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.pipeline import Pipeline


class Verdict(StrEnum):
    """How near the two results are to each other."""

    TEXT = "equal text"
    NAMES = "equal up to names"
    """Of instructions and computations, and to metadata."""
    ANNOTATIONS = "equal up to annotations"
    """And to names, backend_config and frontend attributes."""
    EQUIVALENT = "equivalent"
    """They compute the same on the inputs that were tried."""
    DIFFERENT = "different"
    UNKNOWN = "cannot tell"


_ANNOTATIONS = frozenset(("backend-config", "frontend-attributes"))
"""Classes of content."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Both results of one module."""

    verdict: Verdict
    reason: str
    """Why they are different, or why nobody can tell; else empty."""
    theirs: Module
    ours: Module
    is_changed: bool
    """Whether our passes changed the program."""


def compare_with(run: Run, pipeline: Pipeline, settings: RunSettings) -> Compared:
    """Run passes of ours on what a pass of XLA was given, and compare with what it made of it.

    Raises HloError where a text of XLA cannot be read, PassFailure where a pass of ours fails.
    """
    from hloopt.analysis.fingerprint import LEFT_OUT, fingerprint
    from hloopt.pass_framework.runner import PipelineRunner
    from hloopt.text import PrintOptions, parse_module, print_module
    from hloopt.verifier import ANY_TARGET, verify_module

    theirs, ours, before = (parse_module(text) for text in (run.after, run.before, run.before))
    # What XLA has between its passes need not verify.
    is_valid = next(iter(verify_module(ours, ANY_TARGET)), None) is None
    PipelineRunner(verify=is_valid).run(pipeline, ours)
    is_changed = print_module(ours) != print_module(before)
    # In the order in which XLA prints.
    form = PrintOptions.default()._replace(print_large_constants=True)
    if print_module(ours, form) == print_module(theirs, form):
        return Compared(Verdict.TEXT, "", theirs, ours, is_changed)
    if fingerprint(ours) == fingerprint(theirs):
        return Compared(Verdict.NAMES, "", theirs, ours, is_changed)
    ignored = LEFT_OUT | _ANNOTATIONS
    if fingerprint(ours, ignored=ignored) == fingerprint(theirs, ignored=ignored):
        return Compared(Verdict.ANNOTATIONS, "", theirs, ours, is_changed)
    verdict, reason = _computes_the_same(theirs, ours, settings)
    return Compared(verdict, reason, theirs, ours, is_changed)


def _computes_the_same(theirs: Module, ours: Module, settings: RunSettings) -> tuple[Verdict, str]:
    from hloopt.equivalence import Reference
    from hloopt.interpreter.errors import RunError

    try:
        mismatch = Reference(theirs, settings).compare(ours)
    except RunError as error:
        return Verdict.UNKNOWN, f"XLA's result does not run: {error.message}"
    if mismatch is None:
        return Verdict.EQUIVALENT, ""
    if mismatch.is_decided and (elided := _elided(theirs) or _elided(ours)):
        reason = f"'%{elided.name}' has no values in the text: {mismatch.reason}"
        return Verdict.UNKNOWN, reason
    return Verdict.DIFFERENT if mismatch.is_decided else Verdict.UNKNOWN, mismatch.reason


def _elided(module: Module) -> Instruction | None:
    """A constant that the text elides: it stands for values that nobody knows here."""
    from hloopt.proto import is_elided

    return next((c for c in module.instructions(Opcode.CONSTANT) if is_elided(c)), None)
