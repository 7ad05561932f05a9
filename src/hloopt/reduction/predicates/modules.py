"""Predicates about a module alone: rules it breaks, figures of its reports, what XLA gives."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import ClassVar

from hloopt.diagnostics import HloError, Source
from hloopt.ir.module import Module
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


@dataclass(frozen=True)
class DiffersOnXla:
    """Interpreter and XLA:CPU give different results for a module.

    A module that leaves open what `allowed` does not name may differ for a reason of its own: that
    is another failure.
    """

    seeds: int = 3
    allowed: frozenset[str] | None = None
    """The choices that the input leaves to XLA; None allows all: the input itself."""
    needs_valid: ClassVar[bool] = True
    starts_processes: ClassVar[bool] = True  # XLA runs in one

    def __call__(self, text: str, steps: int | None = None) -> Outcome:
        """Run a module by both, on the same random inputs."""
        from hloopt.reduction.predicates.freedoms import freedoms_of

        try:
            module = parse_module(Source("<module>", text))
            if problems := verify_module(module):
                return unknown(problems[0].message)
            if self.allowed is not None and (more := freedoms_of(module) - self.allowed):
                return unknown(f"XLA may choose {', '.join(sorted(more))}")
            reason = _difference(module, self.seeds, steps)
        except HloError as error:
            return unknown(error.message)
        if reason is None:
            return NOT_SHOWN
        return Outcome(Verdict.SHOWN, "values differ", reason)

    def narrowed(self, text: str, outcome: Outcome) -> DiffersOnXla:
        """Of modules that leave open no more than the input."""
        from hloopt.reduction.predicates.freedoms import freedoms_of

        return replace(self, allowed=freedoms_of(parse_module(Source("<module>", text))))

    def describe(self) -> str:
        """For a message."""
        return "interpreter and XLA:CPU give different results"

    def command(self, path: str) -> str:
        """`hloopt reduce --check`."""
        return f"hloopt reduce {shlex.quote(path)} --differs-on xla --check"


def _difference(module: Module, seeds: int, steps: int | None) -> str | None:
    """The first difference between the engines. Raises RunError where either cannot run it."""
    from hloopt.equivalence import RunSettings
    from hloopt.equivalence.agreement import first_difference
    from hloopt.equivalence.roles import roles_of
    from hloopt.interpreter.exactness import only_moves_data
    from hloopt.xla.engine import run_with_xla

    settings = RunSettings(seeds=seeds, steps=steps)
    placement = settings.place(module)
    plans = placement.plans(roles_of(placement.program))
    is_exact = only_moves_data(module)
    for seed in range(seeds):
        arguments = settings.arguments(placement, seed, plans)
        ours = settings.interpret(placement, arguments, settings.host(seed))
        theirs = run_with_xla(placement.program, arguments, placement.devices)
        for device, values in enumerate(zip(ours, theirs, strict=True)):
            found = first_difference(*values, exact=is_exact)
            if found is not None:
                place = f"{{{','.join(map(str, found.leaf))}}}"
                return (
                    f"output {place} on device {device} (seed {seed}): the interpreter gives "
                    f"{found.left}, XLA {found.right}"
                )
    return None
