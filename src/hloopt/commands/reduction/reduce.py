"""`hloopt reduce`: the smallest module that still shows a failure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.reduction.predicate_options import (
    predicate_of,
    predicate_options,
    time_limit_of,
)
from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    EXIT_USAGE,
    HloCommand,
    format_option,
    parse_time,
    print_json,
    say,
)

if TYPE_CHECKING:
    from hloopt.reduction.outcomes import Predicate
    from hloopt.reduction.reducer import Progress
    from hloopt.reduction.run import Reduced


@click.command(cls=HloCommand)
@click.argument("file", required=False, shell_complete=completion.files)
@predicate_options
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="where to write; default: NAME.reduced.hlo in this folder",
    shell_complete=completion.files,
)
@click.option(
    "-j", "--jobs", type=click.IntRange(1), default=1, help="trials at a time; same result"
)
@click.option(
    "--budget",
    metavar="TIME",
    callback=parse_time,
    help="stop after so long with the smallest module so far: 5min",
)
@click.option("--verify/--no-verify", default=True, help="only modules that verify")
@click.option("--resume", is_flag=True, help="go on with a reduction that was ended")
@click.option("--check", is_flag=True, help="reduce nothing: exit 0 if FILE shows it, 1 if not")
@click.option(
    "--repro",
    metavar="FILE",
    help="reduce the module of a reproducer; the failure is the one it is of",
    shell_complete=completion.files,
)
@format_option
def command(file: str | None, **options: Any) -> int:
    """Reduce a module to the smallest one that still shows a failure.

    One option says which failure. FILE is checked three times first. A module that shows another
    failure (another pass, another error, another message) is set aside, not followed. What is
    written verifies, and is never larger than FILE; a process that is ended leaves the smallest
    module so far at -o, and --resume goes on from there.

    \b
    hloopt reduce step.hlo --pass-fails overlap -o small.hlo -j 4
    hloopt reduce step.hlo --pass-changes-result "algsimp,dce"
    hloopt reduce step.hlo --test 'python check.py {}' --time-limit 30s
    hloopt reduce step.hlo --test './run_hlo {}' --grep 'INTERNAL: .*layout'
    hloopt reduce step.hlo --remark missed:collective-pipeliner:'not pipelined'
    hloopt reduce step.hlo --xla-crashes h100_sxm
    hloopt reduce step.hlo --xla-flags-differ '' xla_cpu_enable_fast_math=true
    hloopt reduce step.hlo --report 'collectives(kind=all-gather).count >= 2'
    """
    from hloopt.files import read_module
    from hloopt.reduction.run import ReduceSettings
    from hloopt.text import print_module

    path, predicate = _subject(file, options)
    text = print_module(read_module(path))
    limit = time_limit_of(options)
    if options["check"]:
        return _check(predicate, text, path, limit.seconds, is_shown=limit.is_shown)
    output = options["output"] or default_output(path)
    check_output(output, path)
    settings = ReduceSettings(
        limit=limit,
        adapts=options["time_limit"] is None and options["hangs"] is None,
        jobs=options["jobs"],
        budget=options["budget"],
        verify=options["verify"],
        resume=options["resume"],
    )
    reduced = reduce_with_progress(text, path, predicate, output, settings)
    if isinstance(reduced, int):
        return reduced
    from hloopt.reduction.summary import lines_of, reduced_to_json

    if options["output_format"] == "json":
        print_json(reduced_to_json(reduced, path, output))
    else:
        for line in lines_of(reduced, output):
            say(line)
    return 0


def _subject(file: str | None, options: dict[str, Any]) -> tuple[str, Predicate]:
    """The file to reduce, and the failure it shows."""
    if options["repro"] is not None:
        if file is not None:
            raise click.UsageError("--repro names the file: give no FILE")
        return options["repro"], _of_reproducer(options["repro"])
    if file is None:
        raise click.UsageError("no input: name a FILE or -")
    predicate = predicate_of(options, file)
    if predicate is None:
        raise click.UsageError(
            "which failure? give --pass-fails PIPELINE, --test COMMAND, or another one of --help"
        )
    return file, predicate


def _of_reproducer(path: str) -> Predicate:
    """The failure that a reproducer is of."""
    from hloopt.commands.opt import command as opt
    from hloopt.files import read_source
    from hloopt.pass_framework.reproducer import reproducer_arguments
    from hloopt.reduction.predicates.passes import PassChangesResult, PassFails

    arguments = [path, *reproducer_arguments(read_source(path))]
    with opt.make_context("opt", arguments) as repeated:
        passes, validate = repeated.params["passes"], repeated.params["validate"]
        seeds = repeated.params["seeds"]
    return PassChangesResult(passes, seeds) if validate else PassFails(passes)


def default_output(path: str) -> str:
    """The file that a reduction goes to where nobody says."""
    name = "module" if path == "-" else os.path.basename(path).partition(".")[0]
    return f"{name or 'module'}.reduced.hlo"


def check_output(output: str, path: str) -> None:
    """Raise UsageError for an output that is the input, or that can be written only once."""
    from hloopt.files import is_stdout

    if is_stdout(output):
        raise click.UsageError("-o needs a file: it holds the smallest module so far")
    if os.path.exists(output) and os.path.exists(path) and os.path.samefile(output, path):
        raise click.UsageError(f"{output} is the input: -o PATH names another file to write")


def reduce_with_progress(
    text: str, path: str, predicate: Predicate, output: str, settings: Any
) -> Reduced | int:
    """Reduce, with a line on a terminal that tells how far it is; the exit code where nothing is
    shown."""
    from hloopt.diagnostics import render_error
    from hloopt.reduction.asking import NotShown
    from hloopt.reduction.predicates.engines import FlagsDiffer
    from hloopt.reduction.run import reduce_file

    try:
        with _showing_progress() as on_progress:
            return reduce_file(text, path, predicate, output, settings, on_progress)
    except NotShown as error:
        print(render_error(error), file=sys.stderr)
        return EXIT_USAGE if isinstance(predicate, FlagsDiffer) else EXIT_FOUND


@contextmanager
def _showing_progress() -> Iterator[Callable[[Progress], None] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    from hloopt.diagnostics import counted

    with Console(stderr=True).status("checking the input …") as status:
        yield lambda progress: status.update(
            f"reducing: {counted(progress.size.instructions, 'instruction')}, "
            f"{counted(progress.trials, 'trial')}, {progress.seconds:.0f} s"
        )


def _check(predicate: Predicate, text: str, path: str, seconds: float, *, is_shown: bool) -> int:
    """Ask the predicate of the input, and say what it answers."""
    from hloopt.reduction.trials import TimeLimit, Trials

    with Trials(predicate, TimeLimit(seconds, is_shown)) as trials:
        outcome = trials.outcome(text)
    detail = f": {outcome.detail}" if outcome.detail else ""
    say(f"{path}: {outcome.verdict.value}{detail}")
    if outcome.is_shown:
        return 0
    return EXIT_USAGE if outcome.verdict.value == "cannot tell" else EXIT_FOUND
