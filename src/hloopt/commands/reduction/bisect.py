"""`hloopt bisect`: the pass, the run and the application that make a failure show."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.reduction.predicate_options import (
    pipeline_text,
    predicate_of,
    predicate_options,
    time_limit_of,
)
from hloopt.commands.reduction.reduce import check_output, default_output, reduce_with_progress
from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    HloCommand,
    format_option,
    print_json,
    say,
)

if TYPE_CHECKING:
    from hloopt.reduction.bisection import Culprit
    from hloopt.reduction.outcomes import Predicate
    from hloopt.reduction.trials import TimeLimit


@click.command(cls=HloCommand)
@click.argument("file", shell_complete=completion.files)
@predicate_options
@click.option("--reduce", "reduces", is_flag=True, help="then reduce the module for this run alone")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="where --reduce writes; default: NAME.reduced.hlo in this folder",
    shell_complete=completion.files,
)
@click.option(
    "-j", "--jobs", type=click.IntRange(1), default=1, help="trials at a time of --reduce"
)
@format_option
def command(file: str, **options: Any) -> int:
    """Find the pass, its run, and the one application of it that make a failure show.

    The pipeline is that of -p or --passes, or of --pass-fails and --pass-changes-result; without an
    option that says which failure, a pass of it fails. Other failures are looked for in the result
    of the pipeline, cut short after so many runs of passes, and after so many of their
    applications (`hloopt opt --opt-limit`).

    \b
    hloopt bisect step.hlo -p overlap
    hloopt bisect step.hlo --pass-changes-result simplify --reduce -o small.hlo
    hloopt bisect step.hlo -p simplify --test 'python check.py {}'
    """
    from hloopt.diagnostics import printable
    from hloopt.files import read_module
    from hloopt.text import print_module

    passes, predicate = _question(options, file)
    _check_handing_over(options, predicate, file)
    text = print_module(read_module(file))
    limit = time_limit_of(options)
    culprit = _find(text, file, passes, predicate, limit, options)
    if isinstance(culprit, int):
        return culprit
    from hloopt.reduction.summary import culprit_lines, culprit_to_json

    shown_by = _command(file, passes, predicate, culprit)
    if options["output_format"] == "json":
        print_json(culprit_to_json(culprit, file, shown_by))
    else:
        for line in culprit_lines(culprit, shown_by):
            print(printable(line))
    return _reduce(text, file, passes, predicate, culprit, options) if options["reduces"] else 0


def _question(options: dict[str, Any], file: str) -> tuple[str, Predicate]:
    """The pipeline, and what it is asked."""
    from hloopt.pass_framework.library import pipeline_of
    from hloopt.reduction.predicates.passes import PassFails, PassPredicate

    predicate = predicate_of(options, file)
    passes = pipeline_text(options)
    if isinstance(predicate, PassPredicate):
        return predicate.passes, predicate
    if passes is None:
        raise click.UsageError("which pipeline? give -p NAME, --passes TEXT or --pass-fails")
    pipeline_of(passes)
    return passes, predicate or PassFails(passes)


def _check_handing_over(options: dict[str, Any], predicate: Predicate, file: str) -> None:
    """Raise UsageError for what --reduce cannot do, before anything runs."""
    from hloopt.reduction.predicates.passes import PassPredicate

    if options["reduces"] and not isinstance(predicate, PassPredicate):
        raise click.UsageError("--reduce needs a failure of a pass: --pass-fails, --remark, …")
    if not options["reduces"] and options["output"] is not None:
        raise click.UsageError("-o needs --reduce: it is where the reduced module goes")
    if options["reduces"]:
        check_output(options["output"] or default_output(file), file)


def _find(
    text: str,
    file: str,
    passes: str,
    predicate: Predicate,
    limit: TimeLimit,
    options: dict[str, Any],
) -> Culprit | int:
    from hloopt.diagnostics import render_error
    from hloopt.reduction.asking import NotShown, ask
    from hloopt.reduction.bisection import Bisection, CutShort, Limits, task_of, trace_file
    from hloopt.reduction.trials import Trials

    adapts = options["time_limit"] is None and options["hangs"] is None
    with (
        trace_file() as trace,
        Trials(CutShort(passes, predicate, trace), limit, adapts=adapts) as trials,
    ):
        try:
            shown = ask(trials, predicate, task_of(Limits(), text), file)
        except NotShown as error:
            print(render_error(error), file=sys.stderr)
            return EXIT_FOUND
        trials.narrow(text, shown)
        return Bisection(trials, text, trace).find(shown)


def _command(file: str, passes: str, predicate: Predicate, culprit: Culprit) -> str:
    """The command line that shows the failure with as few applications as it needs."""
    from hloopt.reduction.predicates.passes import PassPredicate, pass_options

    limit = "" if culprit.number is None else f" --opt-limit {culprit.number}"
    if isinstance(predicate, PassPredicate):
        return f"{predicate.command(file)}{limit}"
    opt = f"hloopt opt {shlex.quote(file)} {pass_options(passes)}{limit} -o out.hlo"
    return f"{opt}; {predicate.command('out.hlo')}"


def _reduce(
    text: str,
    file: str,
    passes: str,
    predicate: Predicate,
    culprit: Culprit,
    options: dict[str, Any],
) -> int:
    """Reduce the module as the culprit finds it, for this run alone."""
    from dataclasses import replace

    from hloopt.reduction.bisection import before_run
    from hloopt.reduction.predicates.passes import PassPredicate
    from hloopt.reduction.run import ReduceSettings
    from hloopt.reduction.summary import lines_of

    assert isinstance(predicate, PassPredicate)  # see _check_handing_over
    before, alone = before_run(text, passes, culprit.run)
    predicate = replace(predicate, passes=alone)
    output = options["output"] or default_output(file)
    settings = ReduceSettings(
        limit=time_limit_of(options),
        adapts=options["time_limit"] is None and options["hangs"] is None,
        jobs=options["jobs"],
    )
    reduced = reduce_with_progress(before, file, predicate, output, settings)
    if isinstance(reduced, int):
        return reduced
    for line in lines_of(reduced, output):
        say(line)
    return 0
