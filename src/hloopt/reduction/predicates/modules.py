"""Predicates about a module alone: rules it breaks, figures of its reports."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import ClassVar

from hloopt.diagnostics import HloError, Source
from hloopt.reduction.outcomes import (
    NOT_SHOWN,
    Outcome,
    Verdict,
    kinds_of,
    named_in,
    signature_of,
    unknown,
)
from hloopt.text import parse_module
from hloopt.verifier import verify_module


@dataclass(frozen=True)
class BreaksRule:
    """A module breaks a rule of the verifier, by its error code."""

    code: str
    needs_valid: ClassVar[bool] = False
    starts_processes: ClassVar[bool] = False

    def __call__(self, text: str, steps: int | None = None) -> Outcome:
        """Verify a module."""
        try:
            module = parse_module(Source("<module>", text))
        except HloError as error:
            return unknown(error.message)
        for problem in verify_module(module):
            if problem.code == self.code:
                signature = f"{problem.code}: {signature_of(problem.message, kinds_of(module))}"
                about = named_in(problem.message)
                return Outcome(Verdict.SHOWN, signature, problem.message, about=about)
        return NOT_SHOWN

    def narrowed(self, text: str, outcome: Outcome) -> BreaksRule:
        """The same."""
        return self

    def describe(self) -> str:
        """For a message."""
        return f"the verifier reports {self.code}"

    def command(self, path: str) -> str:
        """`hloopt verify`."""
        return f"hloopt verify {shlex.quote(path)}"


@dataclass(frozen=True)
class ExpectationHolds:
    """An expectation holds, in the language of `hloopt expect`."""

    expression: str
    needs_valid: ClassVar[bool] = True
    starts_processes: ClassVar[bool] = False

    def __call__(self, text: str, steps: int | None = None) -> Outcome:
        """Put the expectation to a module."""
        from hloopt.checks.expectations.evaluation import check
        from hloopt.checks.expectations.grammar import parse_expectation
        from hloopt.checks.results import Verdict as CheckVerdict
        from hloopt.checks.subject import Subject
        from hloopt.checks.view import View

        try:
            module = parse_module(Source("<module>", text))
            found = check(parse_expectation(self.expression), View.of(Subject("<module>", module)))
        except HloError as error:
            return unknown(error.message)
        if found.verdict is CheckVerdict.NONE:
            return unknown(found.reason)
        is_shown = found.verdict is CheckVerdict.PASSED
        return Outcome(Verdict.SHOWN, detail=found.title) if is_shown else NOT_SHOWN

    def narrowed(self, text: str, outcome: Outcome) -> ExpectationHolds:
        """The same."""
        return self

    def describe(self) -> str:
        """For a message."""
        return f"'{self.expression}' holds"

    def command(self, path: str) -> str:
        """`hloopt expect`."""
        return f"hloopt expect {shlex.quote(path)} {shlex.quote(self.expression)}"
