"""Running passes on a module to see whether, and how, they fail."""

from __future__ import annotations

import multiprocessing
import re
import threading
import time
from collections import Counter
from multiprocessing.connection import Connection
from typing import NamedTuple

from failures_lib.case import Culprit, Kind, PlantedFailure
from hloopt.diagnostics import HloError, HloVerifyError, Miscompiled, PassFailure
from hloopt.equivalence import RunSettings
from hloopt.ir import Module
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import ModulePass, PassContext, Remark
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline import FixpointStep, PassStep, Pipeline, PipelineStep, Step
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.runner import Observer, PassRun, PipelineRunner
from hloopt.pass_framework.validation import Validator
from hloopt.text import parse_module

_GRACE = 120.0
"""Seconds for a process to answer: on a busy machine it waits for most of them."""
_TICK = 0.02


class Shown(NamedTuple):
    """A failure that a run of passes showed."""

    signature: str
    culprit: Culprit
    """The run that failed, and the last application before it failed."""


class _Watch(Observer):
    """The runs of passes so far, the latest among them."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.pass_name = ""
        self.iteration: int | None = None
        self.begun: float | None = None
        """The processor time at which the latest run began."""
        self.applications = Applications()
        self.made_before = 0
        self.missed: list[Shown] = []
        """The missed remarks of planted passes."""

    def before(self, run: PassRun, module: Module) -> None:
        self.iteration = run.iteration

    def begin(self, context: PassContext) -> None:
        self.pass_name = context.pass_name
        self.runs[self.pass_name] += 1
        self.applications = context.applications
        self.made_before = context.applications.made
        self.begun = time.process_time()

    def culprit(self) -> Culprit:
        made, last = self.applications.made, self.applications.last
        name = self.pass_name
        if made == self.made_before or last is None:
            return Culprit(name, self.runs[name], self.iteration, made + 1)
        return Culprit(name, self.runs[name], self.iteration, made, last.instruction)


class _Remarks(list[Remark]):
    """The remarks of a run, which notes when a planted pass misses something."""

    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self._watch = watch

    def append(self, remark: Remark) -> None:
        super().append(remark)
        is_missed = remark.kind == "missed" and remark.pass_name.startswith("planted-")
        if is_missed:
            missed = Shown(without_names(remark.reason), self._watch.culprit())
            self._watch.missed.append(missed)


class _Watched(ModulePass):
    """A pass that tells when it runs."""

    name = "watched"

    def __init__(self, made: ModulePass, watch: _Watch) -> None:
        super().__init__()
        self._made, self._watch = made, watch
        self.name, self.preserves = made.name, made.preserves

    def run(self, module: Module, context: PassContext) -> bool:
        self._watch.begin(context)
        context.remarks = _Remarks(self._watch)
        return self._made.run(module, context)


def show(case: PlantedFailure, text: str, limit: int | None = None) -> Shown | None:
    """How the passes of a case fail on a text; None if they do not fail as its kind does.

    Raises HloError for a text that is not valid, or that cannot be run to compare results.
    """
    if case.kind == "endless":
        return _show_apart(case, text, limit)
    return _show_here(case, text, limit, _Watch())


def _show_here(case: PlantedFailure, text: str, limit: int | None, watch: _Watch) -> Shown | None:
    kind, passes = case.kind, case.passes
    steps = tuple(_watched(step, watch) for step in parse_passes(passes, find_pipeline).steps)
    validator = Validator(RunSettings(), each=True) if kind == "wrong result" else None
    runner = PipelineRunner(
        validator=validator,
        wants_remarks=kind == "missed remark",
        observers=(watch,),
        opt_limit=limit,
    )
    module = parse_module(text)
    try:
        runner.run(Pipeline("planted", steps), module)
    except PassFailure as error:
        cause = error.__cause__
        if _kind_of(cause) != kind:
            return None
        return Shown(_signature(cause), watch.culprit())
    return next((each for each in watch.missed if each.signature == case.signature), None)


def _show_apart(case: PlantedFailure, text: str, limit: int | None) -> Shown | None:
    """As `_show_here`, in a process that is killed when the time is over."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=_answer, args=(theirs, case, text, limit), daemon=True)
    child.start()
    theirs.close()
    try:
        if not ours.poll(case.seconds + _GRACE):
            raise TimeoutError(f"{case.name}: no answer of the process that runs the passes")
        answer = ours.recv()
    finally:
        child.kill()
        child.join()
        ours.close()
    if isinstance(answer, HloError):
        raise answer
    assert answer is None or isinstance(answer, Shown)
    return answer


def _answer(out: Connection, case: PlantedFailure, text: str, limit: int | None) -> None:
    """Send None if the passes end, else the run of a pass that takes longer than the case says."""
    watch, ended = _Watch(), threading.Event()

    def look_at_the_clock() -> None:
        while not ended.wait(_TICK):
            begun = watch.begun
            if begun is not None and time.process_time() - begun > case.seconds:
                out.send(Shown(f"{watch.pass_name} does not end", watch.culprit()))
                return

    clock = threading.Thread(target=look_at_the_clock, daemon=True)
    clock.start()
    answer = None
    try:
        _show_here(case, text, limit, watch)
    except HloError as error:
        answer = error
    ended.set()
    clock.join()
    out.send(answer)


def _kind_of(cause: BaseException | None) -> Kind:
    if isinstance(cause, HloVerifyError):
        return "invalid module"
    return "wrong result" if isinstance(cause, Miscompiled) else "crash"


def _signature(cause: BaseException | None) -> str:
    if isinstance(cause, Miscompiled):
        return "another result"
    said = cause.message if isinstance(cause, HloError) else str(cause)
    if isinstance(cause, HloVerifyError):  # the first problem, and what is wrong in general
        said = re.sub(r" \(and \d+ more problems?\)$", "", said).partition("; ")[0]
    code = f" {cause.code}" if isinstance(cause, HloError) and cause.code else ""
    return f"{type(cause).__name__}{code}: {without_names(said)}"


_SHAPE = re.compile(r"\b[a-z]+\d*(?:e\d+m\d+\w*)?\[[\d,<=?]*\](?:\{[^}]*\})?")


def without_names(message: str) -> str:
    """A message with what stands for names, shapes and numbers in their places."""
    message = re.sub(r"%[\w.\-]+", "%…", message)
    message = re.sub(r"'[\w.\-]+'", "'…'", message)
    message = _SHAPE.sub("SHAPE", re.sub(r"/\*.*?\*/", "", message))
    message = re.sub(r"SHAPE(, SHAPE)+", "SHAPE", message)
    return re.sub(r"-?\b\d+\b", "N", message)


def _watched(step: Step, watch: _Watch) -> Step:
    match step:
        case PassStep():
            return step._replace(made=_Watched(step.made, watch))
        case FixpointStep():
            return step._replace(steps=tuple(_watched(each, watch) for each in step.steps))
        case PipelineStep(pipeline=pipeline):
            steps = tuple(_watched(each, watch) for each in pipeline.steps)
            return step._replace(pipeline=pipeline._replace(steps=steps))
