"""Bisect a pipeline: the pass, its run, and the application of it that make a failure show."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from hloopt.diagnostics import HloError, Source
from hloopt.ir.module import Module
from hloopt.pass_framework.applications import Application
from hloopt.pass_framework.library import pipeline_of
from hloopt.pass_framework.pipeline import starts_processes
from hloopt.pass_framework.pipeline_text import format_pass
from hloopt.pass_framework.runner import Observer, PassRun, PipelineRunner
from hloopt.reduction.outcomes import Outcome, Predicate, unknown
from hloopt.reduction.predicates.passes import PassPredicate
from hloopt.reduction.trials import Trials
from hloopt.text import parse_module, print_module


class Limits(NamedTuple):
    """How much of a pipeline runs: so many runs of passes, so many applications; None: all."""

    runs: int | None = None
    applications: int | None = None


class Begun(NamedTuple):
    """A run of a pass that was begun."""

    pass_name: str
    iteration: int | None


@dataclass
class Trace:
    """The doings of a run of a pipeline, up to where it was cut, failed or was ended."""

    runs: list[Begun]
    made_before: list[int]
    """By run, the applications before it."""
    applications: list[Application]


class Culprit(NamedTuple):
    """The part of a pipeline without which the failure does not show."""

    pass_name: str
    run: int
    """The number among all runs of passes, from 1."""
    run_of_pass: int
    """The number among the runs of this pass, from 1."""
    iteration: int | None
    """The round of the fixpoint that it is in, from 1."""
    number: int | None
    """The number of the application among all, from 1; None where it needs none of this run."""
    application: Application | None
    outcome: Outcome


@dataclass(frozen=True)
class CutShort:
    """Asks a predicate of a pipeline that is cut short. Picklable.

    A predicate about passes judges the run; any other one is asked of the result.
    """

    passes: str
    predicate: Predicate
    trace: str
    """The file that is told what runs: a process that hangs tells nothing else."""
    needs_valid: ClassVar[bool] = True

    @property
    def starts_processes(self) -> bool:
        """As the predicate, or the passes."""
        return self.predicate.starts_processes or starts_processes(pipeline_of(self.passes))

    def narrowed(self, text: str, outcome: Outcome) -> CutShort:
        """As the predicate."""
        return replace(self, predicate=self.predicate.narrowed(text, outcome))

    def __call__(self, task: str, steps: int | None = None) -> Outcome:
        """Run as much as the first line of `task` says on the module behind it."""
        line, _, text = task.partition("\n")
        limits = Limits(*json.loads(line))
        with open(self.trace, "w", encoding="utf-8") as file:
            tracer = _Tracer(lambda entry: print(json.dumps(entry), file=file, flush=True))
            runner = PipelineRunner(
                observers=[tracer],
                opt_limit=limits.applications,
                run_limit=limits.runs,
                on_application=tracer.note,
            )
            try:
                module = parse_module(Source("<module>", text))
                return _judge(self.predicate, self.passes, module, runner)
            except HloError as error:
                return unknown(error.message)

    def describe(self) -> str:
        """As the predicate."""
        return self.predicate.describe()

    def command(self, path: str) -> str:
        """As the predicate."""
        return self.predicate.command(path)


def _judge(predicate: Predicate, passes: str, module: Module, runner: PipelineRunner) -> Outcome:
    if isinstance(predicate, PassPredicate):
        return predicate.judge(module, runner)
    runner.run(pipeline_of(passes), module)
    return predicate(print_module(module))


class _Tracer(Observer):
    def __init__(self, write: Callable[[list[object]], None]) -> None:
        self._write = write

    def before(self, run: PassRun, module: Module) -> None:
        self._write([run.name, run.iteration])

    def note(self, application: Application) -> None:
        self._write([*application])


class Bisection:
    """Finds the culprit in a pipeline.

    Two binary searches, over runs of passes and over the applications of one run, each with both
    ends known: O(log runs + log applications) runs of the pipeline.
    """

    def __init__(self, trials: Trials, text: str, trace: str) -> None:
        self._trials = trials
        self._text = text
        self._trace = trace

    def find(self, shown: Outcome) -> Culprit:
        """The culprit of a failure that the whole pipeline shows. Raises HloError where there is
        none."""
        runs = len(self._traced(Limits()).runs)
        if self._shows(Limits(runs=0), shown):
            raise HloError(
                "the input shows it before any pass has run",
                help="`hloopt reduce` reduces it",
            )
        run = self._least(0, runs, lambda n: Limits(runs=n), shown)
        trace = self._traced(Limits(runs=run))
        before, after = trace.made_before[run - 1], len(trace.applications)
        number = None
        if after > before and self._is_between(Limits(run, before), Limits(run, after), shown):
            number = self._least(before, after, lambda n: Limits(run, n), shown)
        application = None
        if number is not None:
            application = self._traced(Limits(run, number)).applications[number - 1]
        begun = trace.runs[run - 1]
        of_pass = sum(other.pass_name == begun.pass_name for other in trace.runs[:run])
        return Culprit(begun.pass_name, run, of_pass, begun.iteration, number, application, shown)

    def _is_between(self, below: Limits, above: Limits, shown: Outcome) -> bool:
        """Whether applications between these limits are to blame.

        Those that follow each other without end come to one at any limit, given the time.
        """
        return not self._shows(below, shown) and self._shows(above, shown, times=_TIMES)

    def _least(
        self, below: int, above: int, limits: Callable[[int], Limits], shown: Outcome
    ) -> int:
        """The number that shows the failure while the one before does not; `above` shows it."""
        while above - below > 1:
            middle = (below + above) // 2
            if self._shows(limits(middle), shown):
                above = middle
            else:
                below = middle
        return above

    def _shows(self, limits: Limits, shown: Outcome, times: int = 1) -> bool:
        outcome = self._trials.outcome(task_of(limits, self._text), times=times)
        return outcome.is_shown and outcome.signature == shown.signature

    def _traced(self, limits: Limits) -> Trace:
        """The trace of a run, which is made again for it."""
        self._trials.outcome(task_of(limits, self._text), again=True)
        return read_trace(self._trace)


_TIMES = 3


def task_of(limits: Limits, text: str) -> str:
    """A task for `CutShort`."""
    return f"{json.dumps(limits)}\n{text}"


def read_trace(path: str) -> Trace:
    """The trace in a file; a line that was cut off is left out."""
    trace = Trace([], [], [])
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")[:-1]
    for line in lines:
        entry = json.loads(line)
        if len(entry) == len(Begun._fields):
            trace.runs.append(Begun(*entry))
            trace.made_before.append(len(trace.applications))
        else:
            trace.applications.append(Application(*entry))
    return trace


@contextmanager
def trace_file() -> Iterator[str]:
    """The name of a file for a trace, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="hloopt-bisect-") as folder:
        yield os.path.join(folder, "trace.jsonl")


def before_run(text: str, passes: str, number: int) -> tuple[str, str]:
    """The module as a run of a pass finds it, and this run alone as a text of passes.

    Runs are counted from 1. Raises PassFailure where an earlier one fails.
    """
    watcher = _StopsBefore(number)
    module = parse_module(Source("<module>", text))
    try:
        PipelineRunner(observers=[watcher]).run(pipeline_of(passes), module)
    except _ReachedError as reached:
        return reached.text, reached.passes
    raise AssertionError(f"there is no run {number}")


class _ReachedError(Exception):
    def __init__(self, text: str, passes: str) -> None:
        super().__init__()
        self.text, self.passes = text, passes


class _StopsBefore(Observer):
    def __init__(self, number: int) -> None:
        self._left = number

    def before(self, run: PassRun, module: Module) -> None:
        self._left -= 1
        if self._left == 0:
            raise _ReachedError(print_module(module), format_pass(run.name, run.options))
