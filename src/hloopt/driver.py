"""The main job: one module through a pipeline, with what there is to report of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from hloopt.diagnostics import Defect, HloError, Source
from hloopt.pass_framework.pipeline import FindPipeline, PassStep, Pipeline, PipelineStep
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.runner import Observer, PipelineRunner
from hloopt.reports.outcome import Outcome
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.text.print_options import print_options

if TYPE_CHECKING:
    from hloopt.cost_models import CostModelChoice
    from hloopt.interpreter.inputs import Fill
    from hloopt.ir.module import Module
    from hloopt.pass_framework.pipeline_yaml import Budget
    from hloopt.pass_framework.validation import Validator
    from hloopt.reports.schedule.run import Preset


class Settings(NamedTuple):
    """The settings of a run: what to run, and what to report; picklable."""

    pipelines: tuple[str, ...] = ()
    passes: str = ""
    verify: bool = True
    wants_remarks: bool = False
    wants_report: bool = False
    memory: bool | None = None
    """Whether the report compares memory; None: for modules that are not too large."""
    print_before: frozenset[str] = frozenset()
    print_after: frozenset[str] = frozenset()
    print_changed: frozenset[str] = frozenset()
    dump_folder: str | None = None
    reproducer_folder: str | None = None
    print_style: str = "keep"
    print_changes: tuple[str, ...] = ()
    validate: Literal["end", "each"] | None = None
    """Whether, and when, to run the module and compare with what it computed before."""
    seeds: int = 3
    """On how many inputs it is validated."""
    shrink: bool = False
    """Whether it is validated with smaller dimensions."""
    fill: Fill = "random"
    """The filling and files that its inputs are made of."""
    steps: int | None = None
    max_memory: int | None = None
    time_limit: float | None = None
    """The step at which running stops; None where it runs to its end."""
    devices: tuple[int, int] | None = None
    """The replicas and partitions it is validated on; None for as many as the module is for."""
    opt_limit: int | None = None
    """The most applications that all passes together make; None: any number."""

    def pipeline(self) -> Pipeline:
        """The named pipelines, then the passes. Raises PipelineError."""
        find = _finder()
        steps = [PipelineStep(pipeline=find(name)) for name in self.pipelines]
        rest = parse_passes(self.passes, find).steps
        return Pipeline(name="command line", steps=(*steps, *rest))

    def print_options(self) -> PrintOptions:
        """The print options of the result. Raises HloError."""
        return print_options(self.print_style, self.print_changes)


def _finder() -> FindPipeline:
    """A lookup of the pipelines of one command line, which share a budget."""
    budget: list[Budget] = []

    def find(name: str) -> Pipeline:
        from hloopt.pass_framework.library import find_pipeline
        from hloopt.pass_framework.pipeline_yaml import Budget

        if not budget:
            budget.append(Budget())
        return find_pipeline(name, budget=budget[0])

    return find


def optimize(
    read: Callable[[], Module],
    pipeline: Pipeline,
    settings: Settings,
    show: Callable[[str], object],
    on_steps: Callable[[int], None] | None = None,
    on_progress: Callable[[str, float], None] | None = None,
) -> Outcome:
    """Read a module, run `pipeline`, print the module.

    `show` gets modules to be printed on the way, `on_steps` how many instructions a validation has
    run so far, `on_progress` what takes a pass long and which part of it is done. Raises HloError.
    """
    clock = time.perf_counter
    started = clock()
    module = read()
    source = module.source
    before = print_module(module)
    parsed = clock()
    runner = PipelineRunner(
        verify=settings.verify,
        wants_remarks=settings.wants_remarks,
        observers=_observers(settings, show),
        write_reproducer=partial(_write_reproducer, settings),
        validator=_validator(settings, on_steps),
        on_progress=on_progress,
        opt_limit=settings.opt_limit,
    )
    result = runner.run(pipeline, module)
    ran = clock()
    text = print_module(module, settings.print_options())
    written = clock()
    outcome = Outcome(module.name, source, before, text, result)
    is_kept = settings.print_style == "keep" and not settings.print_changes
    if outcome.changed and is_kept:
        _read_back(text, settings)
    checked = clock()
    if settings.wants_report:  # other styles leave things out, or cannot be read at all
        _report(outcome, text if is_kept else print_module(module), settings, pipeline)
    outcome.seconds = {
        "read": parsed - started,
        "passes": ran - parsed,
        "write": written - ran,
        "check": checked - written,
        "report": clock() - checked,
    }
    return outcome


def _read_back(text: str, settings: Settings) -> None:
    """Parse and verify the text to be written. Raises Defect if it is not a valid module.

    Costs as much as reading and verifying.
    """
    from hloopt.verifier import ANY_TARGET, verify_module

    try:
        module = parse_module(text)
        if settings.verify and (errors := verify_module(module, ANY_TARGET)):
            raise errors[0]
    except HloError as error:
        raise Defect(
            f"the result cannot be read again: {error.message}",
            help="nothing is written; report it with the input and the passes",
        ) from error


def _write_reproducer(
    settings: Settings, step: PassStep, module_text: str, reason: str, limit: int | None
) -> str:
    from hloopt.pass_framework.reproducer import Reproducers

    options = [] if settings.verify else ["--no-verify"]
    if limit is not None:
        options += ["--opt-limit", str(limit)]
    if settings.validate:
        options += ["--validate", "each", "--seeds", str(settings.seeds)]
        options += ["--shrink"] * settings.shrink
        if settings.fill != "random":
            options += ["--fill", settings.fill]
        if settings.devices:
            options += ["--devices", "x".join(map(str, settings.devices))]
    return Reproducers(settings.reproducer_folder, tuple(options))(step, module_text, reason)


def _validator(settings: Settings, on_steps: Callable[[int], None] | None) -> Validator | None:
    if settings.validate is None:
        return None
    from hloopt.equivalence import RunSettings
    from hloopt.equivalence.settings import MOST_MEMORY, MOST_STEPS
    from hloopt.interpreter.inputs import Inputs
    from hloopt.interpreter.limits import Deadline
    from hloopt.pass_framework.validation import Validator

    run = RunSettings(
        seeds=settings.seeds,
        inputs=Inputs(settings.fill),
        counts=settings.devices,
        steps=settings.steps or MOST_STEPS,
        memory=settings.max_memory or MOST_MEMORY,
        deadline=Deadline(settings.time_limit) if settings.time_limit else None,
        on_steps=on_steps,
    )
    return Validator(run, each=settings.validate == "each", shrink=settings.shrink)


def _observers(settings: Settings, show: Callable[[str], object]) -> list[Observer]:
    if not (
        settings.print_before
        or settings.print_after
        or settings.print_changed
        or settings.dump_folder
    ):
        return []
    from hloopt.pass_framework.observers import DumpWriter, ModulePrinter

    observers: list[Observer] = [
        ModulePrinter(show, settings.print_before, settings.print_after, settings.print_changed)
    ]
    if settings.dump_folder:
        observers.append(DumpWriter(settings.dump_folder))
    return observers


def _report(outcome: Outcome, result: str, settings: Settings, pipeline: Pipeline) -> None:
    """Compare the module before with `result`, which has all that the passes left."""
    from hloopt.reports.diff.comparison import diff_modules
    from hloopt.reports.memory.comparison import compare_memory
    from hloopt.reports.schedule.comparison import NotCompared, compare_schedules

    name = outcome.source.name if outcome.source else outcome.name
    before = parse_module(Source(name, outcome.before))
    after = parse_module(Source(name, result)) if result != outcome.before else before
    if settings.verify:
        outcome.diff = diff_modules(before, after)
    elif not _compare_unverified(outcome, before, after):
        return
    outcome.memory, note = compare_memory(before, after, settings.memory)
    if note is not None:
        outcome.notes.append(note)
    times, preset = _scheduled_by(outcome, pipeline)
    try:
        outcome.schedule = compare_schedules(before, after, times, preset=preset, are_versions=True)
    except NotCompared as reason:
        outcome.notes.append(reason.message)


def _compare_unverified(outcome: Outcome, before: Module, after: Module) -> bool:
    """Compare the texts, if the modules have all that is needed; whether both are valid."""
    from hloopt.reports.diff.comparison import diff_modules
    from hloopt.verifier.well_formed import why_invalid

    try:
        invalid = [error for error in map(why_invalid, (before, after)) if error is not None]
    except HloError as malformed:
        outcome.notes.append(f"no report: {malformed.message}")
        return False
    outcome.diff = diff_modules(before, after)
    if invalid:
        outcome.notes.append(f"no report of memory and schedule: {invalid[0].message}")
    return not invalid


def _scheduled_by(
    outcome: Outcome, pipeline: Pipeline
) -> tuple[CostModelChoice | None, Preset | None]:
    """The configuration of a pipeline's last scheduler: its schedule is judged by the same."""
    if not any(run.name == _SCHEDULER and not run.failed for run in outcome.result.runs):
        return None, None
    chosen = [s.made.options for s in pipeline.passes() if s.made.name == _SCHEDULER]
    return chosen[-1].model_choice, chosen[-1].preset


_SCHEDULER = "latency-hiding-scheduler"
