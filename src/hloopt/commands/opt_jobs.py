"""The files of `hloopt opt`: one after the other, or in several processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hloopt.commands.shared.common import EXIT_USAGE, exit_code_of
from hloopt.diagnostics import (
    HloError,
    Source,
    lost_process,
    out_of_memory,
    printable,
    printable_line,
    render_error,
)

if TYPE_CHECKING:
    from hloopt.driver import Settings
    from hloopt.reports.outcome import Outcome


class Job(NamedTuple):
    """The settings of a job for one file; picklable. `output` None: write nothing."""

    settings: Settings
    output: str | None
    split: bool
    jobs: int
    wants_text_diff: bool
    titled: bool
    """Whether what is shown of a file begins with its name."""
    shows_steps: bool = False
    """Whether to tell on a terminal how far a validation or a long pass is."""


class JobResult:
    """The fate of one file."""

    def __init__(self, path: str, output: str | None) -> None:
        self.path = path
        self.output = output
        self.outcomes: list[Outcome] = []
        self.error: str | None = None
        self.exit_code = 0
        self.changed = False
        self.text_diff = ""


def run_jobs(job: Job, paths: Sequence[str]) -> list[JobResult]:
    """Do the job for each file; results in the order of the files. Raises HloError for paths."""
    from hloopt.files import find_inputs

    inputs = find_inputs(paths)
    outputs = _outputs(job.output, inputs, paths)
    tasks = [(job._replace(output=out), path) for path, out in zip(inputs, outputs, strict=True)]
    if len(tasks) == 1:
        task, path = tasks[0]
        return [run_job(task._replace(shows_steps=True), path)]
    if job.jobs == 1:
        return _with_progress(map(run_job, *zip(*tasks, strict=True)), len(tasks))
    from hloopt.processes import in_processes

    return _with_progress(in_processes(_run_task, tasks, job.jobs, _lost), len(tasks))


def _run_task(task: tuple[Job, str]) -> JobResult:
    return run_job(*task)


def _lost(task: tuple[Job, str]) -> JobResult:
    _, path = task
    result = JobResult(path, output=None)
    result.error = render_error(lost_process(path))
    result.exit_code = EXIT_USAGE
    return result


def _outputs(output: str | None, inputs: Sequence[str], paths: Sequence[str]) -> list[str | None]:
    """The output of each input: the output itself, or into the output as a folder."""
    from hloopt.files import make_folder

    if output is None:
        return [None] * len(inputs)
    is_folder = os.path.isdir(output) or output.endswith(os.sep)
    if output == "-" or (len(inputs) == 1 and not os.path.isdir(paths[0]) and not is_folder):
        if len(inputs) > 1:
            raise HloError(
                f"{len(inputs)} inputs cannot go to stdout",
                help="give -o FOLDER, or --check",
                code="HLO005",
            )
        return [output]
    if os.path.exists(output) and not is_folder:
        raise HloError(f"{output} is a file; several inputs need a folder", code="HLO005")
    if "-" in inputs:
        raise HloError(
            f"standard input has no name for a file in {output}",
            help="give it alone, with -o FILE",
            code="HLO005",
        )
    targets: dict[str, str] = {}
    for path in inputs:
        roots = [p for p in paths if os.path.isdir(p) and path.startswith(os.path.join(p, ""))]
        relative = os.path.relpath(path, roots[0]) if roots else os.path.basename(path)
        target = os.path.join(output, relative)
        if target in targets:
            raise HloError(
                f"{targets[target]} and {path} would both be written to {target}", code="HLO005"
            )
        targets[target] = path
    make_folder(output)  # reported once, not for each input
    return list(targets)


def _with_progress(results: Iterable[JobResult], total: int) -> list[JobResult]:
    """All results, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        return list(results)
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return list(track(results, "hloopt opt", total, console=console, transient=True))


def run_job(job: Job, path: str) -> JobResult:
    """Do the job for one file; errors of the user's or of a pass are part of the result."""
    result = JobResult(path, job.output)
    try:
        _run(job, path, result)
    except (HloError, MemoryError) as error:
        shown = error if isinstance(error, HloError) else out_of_memory(path)
        result.error = render_error(shown if path == "-" else shown.in_file(path))
        result.exit_code = exit_code_of(shown)
    return result


def _run(job: Job, path: str, result: JobResult) -> None:
    from hloopt.driver import optimize
    from hloopt.files import read_module, read_source

    pipeline = job.settings.pipeline()
    with _validation_progress(job) as on_steps, _pass_progress(job) as on_progress:
        run = partial(
            optimize,
            pipeline=pipeline,
            settings=job.settings,
            show=partial(_show, path if job.titled else None),
            on_steps=on_steps,
            on_progress=on_progress,
        )
        if job.split:
            from hloopt.split import split_source
            from hloopt.text import parse_module

            source = read_source(path)
            file = split_source(source)
            result.outcomes += [run(partial(parse_module, chunk)) for chunk in file.chunks]
            before = source.text
            text = file.join([outcome.text for outcome in result.outcomes])
        else:
            outcome = run(partial(read_module, path))
            result.outcomes = [outcome]
            before, text = outcome.before, outcome.text
    result.changed = text != before
    if job.wants_text_diff and result.changed:
        from hloopt.reports.console.text_diff import unified_diff

        result.text_diff = unified_diff(before, text, path)
    if job.output is not None:
        _write(text, job.output, result)


def _show(path: str | None, text: str) -> None:
    """Print a module on the way, in one piece: other processes print theirs."""
    shown = "\n".join(map(printable_line, text.split("\n")))
    sys.stderr.write(shown if path is None else f"// {printable(path)}\n{shown}")


def _validation_progress(job: Job) -> AbstractContextManager[Callable[[int], None] | None]:
    if not (job.shows_steps and job.settings.validate):
        return nullcontext()
    from hloopt.commands.shared.running import showing_steps

    return showing_steps("validating")


def _pass_progress(job: Job) -> AbstractContextManager[Callable[[str, float], None] | None]:
    """A terminal shows one thing at a time: a validation goes first."""
    if not job.shows_steps or job.settings.validate:
        return nullcontext()
    from hloopt.commands.shared.running import showing_parts

    return showing_parts()


def _write(text: str, output: str, result: JobResult) -> None:
    from hloopt.files import has_proto_suffix, has_proto_text_suffix, write_whole

    if has_proto_suffix(output) or has_proto_text_suffix(output):
        _write_proto(text, output, result)
    else:
        write_whole(output, text)


def _write_proto(text: str, output: str, result: JobResult) -> None:
    from hloopt.files import save
    from hloopt.proto.header import left_out
    from hloopt.text import parse_module

    if len(result.outcomes) > 1:
        raise HloError(
            f"{result.path} has {len(result.outcomes)} modules, {output} can hold one",
            help="write text: -o PATH.hlo",
            code="HLO005",
        )
    module = parse_module(Source(result.path, text))
    save(module, output)
    if lost := left_out(module):
        result.outcomes[0].notes.append(f"{output}: a proto has no place for {', '.join(lost)}")
