"""Runs a pipeline on a module: verification, restoring, timing, and what to report of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from hloopt.diagnostics import (
    HloError,
    HloVerifyError,
    Miscompiled,
    PassFailure,
    PassRefused,
    PipelineError,
    Source,
    counted,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.pass_framework.applications import Application, Applications
from hloopt.pass_framework.base import PassContext, Remark
from hloopt.pass_framework.circles import Circles
from hloopt.pass_framework.pipeline import FixpointStep, PassStep, Pipeline, PipelineStep, Step
from hloopt.pass_framework.plugins import place_in_pass
from hloopt.preserves import PRESERVES, Preserves
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, VerifierOptions, verify_changes
from hloopt.verifier.verify import VerifiedState

if TYPE_CHECKING:
    from hloopt.equivalence.path_types import ReadType
    from hloopt.pass_framework.validation import Validation, Validator


class PassRun:
    """One run of one pass."""

    def __init__(self, name: str, iteration: int | None, options: Mapping[str, object]) -> None:
        self.name = name
        self.iteration = iteration
        """The round of a fixpoint, from 1."""
        self.options = options
        """As the pipeline gives them."""
        self.changed = False
        self.instructions = (0, 0)
        """Before and after."""
        self.seconds = 0.0
        self.statistics: dict[str, int] = {}
        self.skipped: str | None = None
        """The reason why the pass did not run (an unmet condition) or has no effect (an error)."""
        self.failed = False


class PipelineResult:
    """The record of a run of a pipeline."""

    def __init__(self, applications: Applications) -> None:
        self.runs: list[PassRun] = []
        self.remarks: list[Remark] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []
        """Notes of passes that whoever reads the result has to know, each once."""
        self.validation: Validation | None = None
        """The result of running and comparing the module; None where nobody asked for it."""
        self.applications = applications
        """The applications of all passes, in the order in which they were made; those of a failed
        pass are among them, so that each has the same number whatever the limit."""

    @property
    def changed(self) -> bool:
        return any(run.changed for run in self.runs)


class Observer:
    """Is told before and after each run of a pass."""

    def before(self, run: PassRun, module: Module) -> None:
        """Look at `module` before a pass."""

    def after(self, run: PassRun, module: Module) -> None:
        """Look at `module`, and at what the pass reports."""


class PipelineRunner(NamedTuple):
    """Runs pipelines.

    A pass that raises, or leaves a module that does not verify or validate, has failed: the module
    is put back as it was before, a reproducer is written, and the run ends unless the step says
    `on_error: skip`.
    """

    verify: bool = True
    wants_remarks: bool = False
    observers: Sequence[Observer] = ()
    write_reproducer: Callable[[PassStep, str, str, int | None], str] | None = None
    """Takes step, module text, reason and the applications that the pass might make; returns how to
    repeat the failure, for the message."""
    verifier_options: VerifierOptions = ANY_TARGET
    validator: Validator | None = None
    on_progress: Callable[[str, float], None] | None = None
    """Told what takes a pass long, and which part of it is done."""
    opt_limit: int | None = None
    """The most applications that all passes together may make; None: any number."""
    run_limit: int | None = None
    """The most runs of passes, of which each begins, whatever `opt_limit` leaves to it; None: any
    number, up to the limit of applications. A pass in a fixpoint has several."""
    on_application: Callable[[Application], None] | None = None
    """Told of each application when a pass asks for it, before it is made."""

    def run(self, pipeline: Pipeline, module: Module) -> PipelineResult:
        """Run all steps on `module`, in place.

        Raises HloVerifyError for a module that is invalid from the start, RunError for one that
        cannot be validated, PassFailure for a pass that fails, PipelineError for an option that a
        pass finds to be wrong.
        """
        return _Execution(self, module).run(pipeline)


class _Execution:
    def __init__(self, runner: PipelineRunner, module: Module) -> None:
        self.runner = runner
        self.module = module
        self.result = PipelineResult(Applications(runner.opt_limit, runner.on_application))
        self.verified = VerifiedState()
        self._preserved: Preserves = "bits"
        """The least that all passes preserve which changed something: comparisons are with the
        module as it was before the first one."""
        self._read_types: tuple[ReadType, ...] = ()
        """The roundings of the backend that these passes were told of."""
        self._text: tuple[int, str] | None = None
        self._made_before = 0
        """The applications before the pass that runs."""
        self._begun = 0
        """The runs of passes so far, without those that were skipped."""

    def run(self, pipeline: Pipeline) -> PipelineResult:
        if self.runner.verify:
            verify_changes(self.module, self.verified, self.runner.verifier_options)
        validator = self.runner.validator
        if validator is not None:
            validator.start(_source_of(self.module, self.text()))
        self._steps(pipeline.steps, None)
        if validator is not None and not validator.each and self.result.changed:
            self._validate_end(validator)
        self.result.validation = validator.found if validator is not None else None
        return self.result

    def _validate_end(self, validator: Validator) -> None:
        try:
            validator.check(self.module, self._preserved, self._read_types)
        except Miscompiled as error:
            raise PassFailure(
                f"the passes change what the module computes: {error.message}",
                help="--validate each names the pass",
                code=error.code,
            ) from error

    def text(self) -> str:
        """The module as text; printed again only after a change."""
        if self._text is None or self._text[0] != self.module.version:
            self._text = (self.module.version, print_module(self.module))
        return self._text[1]

    # -- steps ------------------------------------------------------------------------------

    def _steps(self, steps: Sequence[Step], iteration: int | None) -> bool:
        changed = False
        for step in steps:
            changed |= self._step(step, iteration)
        return changed

    def _step(self, step: Step, iteration: int | None) -> bool:
        unmet = None
        if step.when:
            from hloopt.pass_framework.conditions import unmet_condition

            unmet = unmet_condition(self.module, step.when)
        match step:
            case PassStep():
                return self._pass(step, iteration, unmet)
            case FixpointStep() if unmet is None:
                return self._fixpoint(step)
            case PipelineStep() if unmet is None:
                return self._steps(step.pipeline.steps, iteration)
        return False

    def _fixpoint(self, step: FixpointStep) -> bool:
        changed = False
        circles = Circles()
        circles.earlier(0, self.module, self.text)
        for iteration in range(1, step.max_iterations + 1):
            if not self._steps(step.steps, iteration):
                return changed
            changed = True
            earlier = circles.earlier(iteration, self.module, self.text)
            if earlier is not None:
                self.result.warnings.append(
                    f"fixpoint({_names(step)}) goes in circles: after iteration {iteration} the "
                    f"module is what it was after iteration {earlier}; stopped"
                )
                return changed
        self.result.warnings.append(
            f"fixpoint({_names(step)}) still changed the module in iteration "
            f"{step.max_iterations}, its max_iterations"
        )
        return changed

    def _pass(self, step: PassStep, iteration: int | None, unmet: str | None) -> bool:
        module = self.module
        run = PassRun(step.made.name, iteration, step.options)
        self.result.runs.append(run)
        count = module.instruction_count()
        run.instructions = (count, count)
        if unmet is not None:
            run.skipped = f"condition not met: {unmet}"
            return False
        applications = self.result.applications
        if applications.is_at_limit and self.runner.run_limit is None:
            run.skipped = f"the limit of {counted(applications.made, 'application')} is reached"
            return False
        if self._begun == self.runner.run_limit:
            run.skipped = f"the limit of {counted(self._begun, 'run')} is reached"
            return False
        self._begun += 1
        for observer in self.runner.observers:
            observer.before(run, module)
        before = self.text()
        context = PassContext(
            step.made.name,
            wants_remarks=self.runner.wants_remarks,
            on_progress=self.runner.on_progress,
            applications=applications,
        )
        made = self._made_before = applications.made
        started = time.perf_counter()
        try:
            answer: object = step.made.run(module, context)
            if not isinstance(answer, bool):
                raise TypeError(f"run() returned {answer!r}, not whether it changed the module")
            run.changed = answer and (applications.made > made or self._count_whole(run, before))
            if self.runner.verify and run.changed:
                verify_changes(module, self.verified, self.runner.verifier_options)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the border where any failure is reported
            self._failed(step, run, before, error)
        run.seconds = time.perf_counter() - started
        validator = self.runner.validator
        preserved = max(self._preserved, step.made.preserves, key=PRESERVES.index)
        read_types = self._read_types
        if step.made.read_type is not None and step.made.read_type not in read_types:
            read_types = (*read_types, step.made.read_type)
        if validator is not None and validator.each and run.changed:
            try:
                validator.check(module, preserved, read_types)
            except Miscompiled as error:
                self._failed(step, run, before, error)
        if run.changed:
            self._preserved, self._read_types = preserved, read_types
        run.instructions = (count, module.instruction_count())
        run.statistics = context.statistics
        if not run.failed:
            self.result.remarks += context.remarks
            self.result.notes += [n for n in context.notes if n not in self.result.notes]
        for observer in self.runner.observers:
            observer.after(run, module)
        return run.changed

    def _count_whole(self, run: PassRun, before: str) -> bool:
        """Count the changes of a plugin that did not ask as one application; whether it stands.

        What goes beyond the limit is taken back.
        """
        whole = Application(run.name, self.module.entry.root.name, "changed the module")
        if self.result.applications.add(whole):
            return True
        restore(self.module, before)
        self.verified = VerifiedState()
        return False

    # -- failures ---------------------------------------------------------------------------

    def _failed(self, step: PassStep, run: PassRun, before: str, error: BaseException) -> None:
        """Restore the module; raise PassFailure unless the step says to go on."""
        run.changed = False
        run.failed = True
        reason = describe_failure(error, self.module)
        is_foreseen = isinstance(error, HloVerifyError | Miscompiled | PassFailure | PipelineError)
        place = None if is_foreseen else place_in_pass(error, type(step.made))
        restore(self.module, before)
        self.verified = VerifiedState()
        run.skipped = reason
        where = ""
        is_refused = isinstance(error, PassRefused | PipelineError)
        if self.runner.write_reproducer is not None and not is_refused:
            limit = self.runner.opt_limit
            left = None if limit is None else limit - self._made_before
            where = self.runner.write_reproducer(step, before, reason, left)
        if step.on_error == "skip":
            said = f"pass '{run.name}' failed and was skipped: {reason}"
            self.result.warnings.append(f"{said}; {place}" if place else said)
            return
        if isinstance(error, PassRefused):
            raise PassRefused(f"{run.name}: {reason}", span=error.span, help=error.help) from error
        if isinstance(error, PipelineError):  # an option that only a run could find to be wrong
            raise error.at(step.span)
        own = error if isinstance(error, PassFailure) else None
        unchanged = f"the module is unchanged; {where}" if where else None
        raise PassFailure(
            f"pass '{run.name}' failed: {reason}",
            help="; ".join(filter(None, (own.help if own else None, unchanged))) or None,
            code=_failure_code(error),
        ).noted(own.note if own else place) from error


def _failure_code(error: BaseException) -> str | None:
    if isinstance(error, HloVerifyError):
        return "HLO701"
    return error.code if isinstance(error, Miscompiled | PassFailure) else None


def _names(step: FixpointStep) -> str:
    return ", ".join(s.made.name if isinstance(s, PassStep) else "…" for s in step.steps)


def describe_failure(error: BaseException, module: Module) -> str:
    """The reason why a pass failed: the exception, the instruction it was looking at, the
    module."""
    if isinstance(error, HloVerifyError):
        return f"the module it leaves is invalid: {error.message} (module {module.name})"
    if isinstance(error, Miscompiled):
        return f"it changes what the module computes: {error.message} (module {module.name})"
    if isinstance(error, PassFailure | PipelineError):
        return error.message
    said = error.message if isinstance(error, HloError) else str(error)
    instruction = _instruction_at_fault(error.__traceback__)
    at = f" while looking at %{instruction.name}" if instruction else ""
    return f"{type(error).__name__}: {said}{at} (module {module.name})"


def _instruction_at_fault(traceback: TracebackType | None) -> Instruction | None:
    """The instruction in the innermost frame that has one in a variable."""
    found: Instruction | None = None
    while traceback is not None:
        for value in traceback.tb_frame.f_locals.values():
            if isinstance(value, Instruction):
                found = value
                break
        traceback = traceback.tb_next
    return found


def restore(module: Module, text: str) -> None:
    """Make `module` what `text` says, keeping the object. O(length of the text)."""
    module.become(parse_module(_source_of(module, text)))


def _source_of(module: Module, text: str) -> Source:
    return Source(module.source.name if module.source else "<module>", text)
