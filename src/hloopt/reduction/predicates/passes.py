"""Predicates about what passes do to a module: fail, change its result, make a remark, hang."""

from __future__ import annotations

import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from typing import ClassVar

from hloopt.diagnostics import HloError, PassFailure, PassRefused, Source
from hloopt.equivalence import RunSettings
from hloopt.ir.module import Module
from hloopt.pass_framework.applications import Application
from hloopt.pass_framework.base import Remark
from hloopt.pass_framework.library import names_pipeline, pipeline_of
from hloopt.pass_framework.pipeline import starts_processes
from hloopt.pass_framework.runner import PipelineResult, PipelineRunner
from hloopt.pass_framework.validation import Validator
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

_MISCOMPILED = "HLO702"
_FIRST_SEED = "(seed 0)"
_SPECIALS = "on special values alone"


@dataclass(frozen=True)
class PassPredicate(ABC):
    """A predicate about a run of passes, which `bisect` can cut short."""

    passes: str
    """A pipeline by its name, or passes as text."""

    needs_valid: ClassVar[bool] = True

    @property
    def starts_processes(self) -> bool:
        """As its passes."""
        return starts_processes(pipeline_of(self.passes))

    def __call__(self, text: str, steps: int | None = None) -> Outcome:
        """Run the passes on a module."""
        try:
            module = parse_module(Source("<module>", text))
        except HloError as error:
            return unknown(error.message)
        return self.judge(module, PipelineRunner(), steps)

    def narrowed(self, text: str, outcome: Outcome) -> PassPredicate:
        """The same, unless a subclass knows better."""
        return self

    @abstractmethod
    def judge(self, module: Module, runner: PipelineRunner, steps: int | None = None) -> Outcome:
        """The outcome of the passes on a module, run by `runner` with what is asked added."""

    @abstractmethod
    def describe(self) -> str:
        """For a message."""

    @abstractmethod
    def command(self, path: str) -> str:
        """`hloopt opt` with the passes."""


@dataclass(frozen=True)
class PassFails(PassPredicate):
    """A pass fails: it raises, refuses, or leaves an invalid module."""

    def judge(self, module: Module, runner: PipelineRunner, steps: int | None = None) -> Outcome:
        """Run them by this runner."""
        kinds = kinds_of(module)
        applied = _Applied(runner)
        try:
            _run(self.passes, module, runner._replace(on_application=applied))
        except PassFailure as error:
            return _failure(error, kinds, applied)
        except HloError as error:
            return unknown(error.message)
        return NOT_SHOWN

    def describe(self) -> str:
        """For a message."""
        return f"a pass of '{self.passes}' fails"

    def command(self, path: str) -> str:
        """`hloopt opt` with the passes."""
        return f"hloopt opt {shlex.quote(path)} {pass_options(self.passes)} --check"


@dataclass(frozen=True)
class PassChangesResult(PassPredicate):
    """Passes change what a module computes, as `--validate each` finds."""

    seeds: int = 3
    specials: bool = True

    def narrowed(self, text: str, outcome: Outcome) -> PassChangesResult:
        """On the first random inputs alone, where these showed it."""
        is_first = _FIRST_SEED in outcome.detail and _SPECIALS not in outcome.detail
        return replace(self, seeds=1, specials=False) if is_first else self

    def judge(self, module: Module, runner: PipelineRunner, steps: int | None = None) -> Outcome:
        """Run them by this runner, validated after each."""
        kinds = kinds_of(module)
        most = 0

        def note(done: int) -> None:
            nonlocal most
            most = max(most, done)

        settings = RunSettings(self.seeds, self.specials, steps=steps, on_steps=note)
        applied = _Applied(runner)
        runner = runner._replace(validator=Validator(settings, each=True), on_application=applied)
        try:
            _run(self.passes, module, runner)
        except PassFailure as error:
            if error.code != _MISCOMPILED:
                return unknown(error.message)
            return _failure(error, kinds, applied)._replace(steps=most)
        except HloError as error:
            return unknown(error.message)
        return NOT_SHOWN

    def describe(self) -> str:
        """For a message."""
        return f"a pass of '{self.passes}' changes what the module computes"

    def command(self, path: str) -> str:
        """`hloopt opt` with the passes, validated."""
        seeds = "" if self.seeds == PassChangesResult.seeds else f" --seeds {self.seeds}"
        return (
            f"hloopt opt {shlex.quote(path)} {pass_options(self.passes)} "
            f"--validate each{seeds} --check"
        )


@dataclass(frozen=True)
class PassRemarks(PassPredicate):
    """A pass makes a remark of a kind that matches a regular expression."""

    kind: str
    pass_name: str
    pattern: str

    def judge(self, module: Module, runner: PipelineRunner, steps: int | None = None) -> Outcome:
        """Run them by this runner, with remarks."""
        kinds = kinds_of(module)
        try:
            result = _run(self.passes, module, runner._replace(wants_remarks=True))
        except HloError as error:
            return unknown(error.message)
        found = next(self._matching(result.remarks), None)
        if found is None:
            return NOT_SHOWN
        detail = f"{found.kind} by {found.pass_name}: %{found.instruction}: {found.reason}"
        signature = signature_of(found.reason, kinds)
        about = (found.instruction, *named_in(found.reason))
        return Outcome(Verdict.SHOWN, signature, detail, about=about)

    def _matching(self, remarks: list[Remark]) -> Iterator[Remark]:
        for remark in remarks:
            is_asked = remark.kind == self.kind and remark.pass_name == self.pass_name
            if is_asked and re.search(self.pattern, remark.reason):
                yield remark

    def describe(self) -> str:
        """For a message."""
        return f"'{self.pass_name}' makes a remark ({self.kind}) like '{self.pattern}'"

    def command(self, path: str) -> str:
        """`hloopt opt` with the passes and their remarks."""
        return (
            f"hloopt opt {shlex.quote(path)} {pass_options(self.passes)} --check "
            f"--remarks {self.kind}:{self.pass_name}"
        )


def pass_options(passes: str) -> str:
    """The options of `hloopt opt` for what names a pipeline, or spells passes."""
    option = "-p" if names_pipeline(passes) else "--passes"
    return f"{option} {shlex.quote(passes)}"


_MOST_NAMES = 100


class _Applied:
    """Takes note of the instructions that a run of a pass was applied to, the last ones first."""

    def __init__(self, runner: PipelineRunner) -> None:
        self._names: list[str] = []
        self._next = runner.on_application

    def __call__(self, application: Application) -> None:
        self._names.append(application.instruction)
        if self._next is not None:
            self._next(application)

    def names(self, message: str) -> tuple[str, ...]:
        """Those that a message names, and those of the applications."""
        return (*named_in(message), *dict.fromkeys(reversed(self._names[-_MOST_NAMES:])))


def _run(passes: str, module: Module, runner: PipelineRunner) -> PipelineResult:
    import sys

    with redirect_stdout(sys.stderr):  # what passes of others print is not ours
        return runner.run(pipeline_of(passes), module)


def _failure(error: PassFailure, kinds: Mapping[str, str], applied: _Applied) -> Outcome:
    kind = "refused" if isinstance(error, PassRefused) else error.code or "failed"
    message = _OTHER_VALUES.sub("other values", error.message)
    signature = f"{kind}: {signature_of(message, kinds)}"
    about = applied.names(error.message)
    return Outcome(Verdict.SHOWN, signature, error.message, about=about)


_OTHER_VALUES = re.compile(rf"(?<=computes: )({_SPECIALS}, )?.* was .*, it is .*")
"""The difference of an output: which one, and how many of its elements, depends on the module."""
