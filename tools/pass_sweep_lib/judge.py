"""Run a case on a module, before and after on the same inputs, and say what came of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from hloopt.diagnostics import HloError, Miscompiled, PassFailure, PassRefused, PipelineError
from hloopt.equivalence import RunSettings
from hloopt.equivalence.path_types import ReadType
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.limits import Deadline
from hloopt.ir import Module
from hloopt.pass_framework.runner import PipelineRunner
from hloopt.pass_framework.validation import Validator
from hloopt.preserves import Preserves
from hloopt.text import parse_module, print_module
from pass_sweep_lib.cases import Case
from sweep_lib.findings import Problem, TooSlow

_SEEDS = 2
_STEPS = 200_000
_MEMORY = 1 << 23
_SHRUNKEN = 1 << 28
"""Bytes: smaller dimensions are chosen for about this many."""
_SECONDS = 5.0
_TOO_LARGE = "HLO503"
_NOT_DECIDED = "HLO508"
_STOPPED = f"stopped after {_STEPS:,} steps"
_PATIENCE = 10
"""So many times as many steps may a loop take that a pass makes of one operation."""


class Verdict(NamedTuple):
    """The outcome of a case on a module."""

    outcome: str
    """"equal", "shrunken" for equal with smaller dimensions, "unchanged", "refused", "cannot run",
    "undecided" or "wrong"."""
    reason: str = ""
    problem: Problem | None = None

    @property
    def changed(self) -> bool:
        return self.outcome not in ("unchanged", "refused")


class _Comparisons(Validator):
    """Validates each result once, however many cases have it; nothing after what cannot be run.

    RunErrors are of the module as it was: where a result cannot be run, that is a difference.
    """

    def __init__(self, *, shrink: bool) -> None:
        settings = RunSettings(
            seeds=_SEEDS,
            steps=_STEPS,
            memory=_SHRUNKEN if shrink else _MEMORY,
            deadline=Deadline(_SECONDS),
        )
        super().__init__(settings, each=False, shrink=shrink)
        self._equal: set[tuple[object, ...]] = set()
        self._error: RunError | None = None

    def check(
        self, module: Module, preserves: Preserves, read_types: Sequence[ReadType] = ()
    ) -> None:
        result = (print_module(module), preserves, *read_types)
        if result in self._equal:
            return
        if self._error is not None:
            raise self._error
        try:
            super().check(module, preserves, read_types)
        except Miscompiled as error:
            if _STOPPED not in error.message:
                raise
            assert self._source is not None
            patient = Validator(
                self._settings._replace(steps=_PATIENCE * _STEPS), each=False, shrink=self._shrink
            )
            patient.start(self._source)
            patient.check(module, preserves, read_types)
        except RunError as error:
            if error.code != _NOT_DECIDED:
                self._error = error
            raise
        self._equal.add(result)


class Bench:
    """A text on which cases run; those that leave the module alone leave it to the next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._untouched: Module | None = None
        self._validators = {shrink: _Comparisons(shrink=shrink) for shrink in (False, True)}

    def judge(self, case: Case) -> Verdict:
        """Run a case, validate what it did; with smaller dimensions where it is too large."""
        verdict = self._judge(case, shrink=False)
        return self._judge(case, shrink=True) if verdict.outcome == "too large" else verdict

    def _judge(self, case: Case, *, shrink: bool) -> Verdict:
        module = self._untouched or parse_module(self._text)
        self._untouched = None
        runner = PipelineRunner(validator=self._validators[shrink])
        try:
            if runner.run(case.pipeline, module).changed:
                return Verdict("shrunken" if shrink else "equal")
        except (PassRefused, PipelineError) as error:
            return Verdict("refused", error.message)
        except PassFailure as error:
            return Verdict("wrong", error.message, _problem(case, error))
        except HloError as error:
            if error.code == _TOO_LARGE and not shrink:
                return Verdict("too large", error.message)
            outcome = "undecided" if error.code == _NOT_DECIDED else "cannot run"
            return Verdict(outcome, error.message)
        except TooSlow:
            return Verdict("cannot run", "it takes too long")
        self._untouched = module
        return Verdict("unchanged")


def _problem(case: Case, error: PassFailure) -> Problem:
    """A failure; those of one pass for one reason are of one kind."""
    cause = error.__cause__
    if isinstance(cause, Miscompiled):
        message = cause.message
    elif isinstance(cause, HloError):
        message = f"the module it leaves is invalid: {cause.message}"
    elif cause is not None:
        return Problem.of(case.name, cause)
    else:
        message = error.message
    line = re.split(r"; | on device | \(seed ", message.splitlines()[0])[0]
    line = re.sub(r"-?\d[\d.e+\-]*", "N", re.sub(r"%[\w.\-]+", "%…", line))
    return Problem(f"{case.name}: {line[:90]}", f"{case.passes}\n{error.message}")
