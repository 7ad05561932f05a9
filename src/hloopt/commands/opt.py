"""`hloopt opt`: run passes on modules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hloopt.commands.opt_jobs import Job, JobResult, run_jobs
from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    HloCommand,
    color_option,
    format_option,
    has_titles,
    make_console,
    memory_option,
    note_unreadable,
    print_json,
    print_style_option,
    print_title,
    say,
    seeds_option,
)
from hloopt.commands.shared.running import devices_option, fill_option, limit_options

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.pass_framework.pipeline import Pipeline
    from hloopt.reports.outcome import Outcome

F = TypeVar("F", bound=Callable[..., Any])


def _every(name: str, help: str) -> Callable[[F], F]:
    """An option that names passes, or stands alone for all of them."""
    return click.option(
        name,
        multiple=True,
        is_flag=False,
        flag_value="*",
        metavar="[PASS]",
        shell_complete=completion.passes,
        help=help,
    )


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, metavar="FILE…", shell_complete=completion.files)
@click.option(
    "-p",
    "--pipeline",
    "pipelines",
    multiple=True,
    metavar="NAME",
    help="a shipped pipeline (see `hloopt pipelines`) or a YAML file",
    shell_complete=completion.pipelines,
)
@click.option(
    "--passes",
    default="",
    metavar="TEXT",
    help='passes as text: "call-inliner,fixpoint(tuple-simplifier,dce){max_iterations=5}"',
    shell_complete=completion.pass_text,
)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="where to write; a folder for several inputs",
    shell_complete=completion.files,
)
@click.option(
    "-j", "--jobs", type=click.IntRange(1), default=1, help="processes for several inputs"
)
@click.option("--split-input-file", is_flag=True, help="each file holds modules between // -----")
@print_style_option
@click.option("--check", is_flag=True, help="write nothing; exit 1 if anything would change")
@click.option("--diff", "show_diff", is_flag=True, help="as --check, and show what would change")
@click.option(
    "--report/--no-report", default=None, help="what passes did, on stderr; default: with -o"
)
@memory_option
@click.option("--side-by-side", is_flag=True, help="report changed instructions with their texts")
@click.option("--verify/--no-verify", default=True, help="verify input and results of passes")
@click.option(
    "--validate",
    is_flag=False,
    flag_value="end",
    type=click.Choice(["end", "each"]),
    help="run the module before and after, at the end or around each pass, and compare",
)
@seeds_option
@devices_option
@fill_option
@limit_options
@click.option("--shrink", is_flag=True, help="validate with smaller dimensions where that is safe")
@click.option(
    "--opt-limit",
    type=click.IntRange(0),
    metavar="N",
    help="stop after N applications of passes on each module, and report the last of them",
)
@click.option("--timing", is_flag=True, help="report the time of each pass and phase")
@click.option("--statistics", is_flag=True, help="report what each pass counted")
@click.option(
    "--remarks",
    multiple=True,
    metavar="KIND[,KIND][:PASS]",
    help="report what passes did (applied), did not do (missed) or found out (analysis), and why",
    shell_complete=completion.remark_kinds,
)
@_every("--print-before", "print the module before passes, on stderr")
@_every("--print-after", "print the module after passes, on stderr")
@_every("--print-changed", "print the module after passes that changed it, on stderr")
@click.option(
    "--dump-dir",
    metavar="DIR",
    help="write the module after each change into DIR",
    shell_complete=completion.folders,
)
@click.option(
    "--repro",
    metavar="FILE",
    help="repeat a failure from its reproducer",
    shell_complete=completion.files,
)
@click.option(
    "--repro-dir",
    metavar="DIR",
    help="where reproducers go; default: the temp folder",
    shell_complete=completion.folders,
)
@format_option
@color_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Run passes on HLO modules.

    FILE is a file, a folder or - (standard input); .gz, .zst, .xz and .bz2 are read and written as
    they are. A name that ends in .pb (.pb.gz, …) is that of an HloProto, in .pbtxt that of one in
    text: pip install 'hloopt[proto]'.
    Without -o the result goes to stdout. Pipelines run in the order given, then --passes.

    \b
    hloopt opt step.hlo -p simplify -o out.hlo
    hloopt opt dumps/ -p simplify -o optimized/ -j 4
    cat step.hlo | hloopt opt - --passes "call-inliner,dce" | less
    """
    if options["repro"]:
        options |= _repetition(ctx, options)
    if not options["files"]:
        raise click.UsageError("no input: name a FILE, a folder or -")
    if not options["pipelines"] and not options["passes"]:
        raise click.UsageError("nothing to run: give -p NAME or --passes TEXT")
    checks = options["check"] or options["show_diff"]
    if options["output_format"] == "json" and options["output"] in (None, "-") and not checks:
        raise click.UsageError("--format json needs -o PATH, --check or --diff: stdout is taken")
    wants_report = options["report"]
    if wants_report is None:
        wants_report = bool(options["memory"]) or (
            options["output"] not in (None, "-") and not checks
        )
    results = run_jobs(_job(options, wants_report=wants_report), options["files"])
    return _finish(results, options, wants_report=wants_report)


def _repetition(ctx: click.Context, options: dict[str, Any]) -> dict[str, Any]:
    """The input, passes and verification that a reproducer states; it states no other settings."""
    from hloopt.files import read_source
    from hloopt.pass_framework.reproducer import reproducer_arguments

    if options["files"] or options["pipelines"] or options["passes"]:
        raise click.UsageError("--repro names input and passes: give no FILE, -p or --passes")
    path = options["repro"]
    arguments = [path, *reproducer_arguments(read_source(path))]
    with command.make_context("opt", arguments, parent=ctx.parent) as repeated:
        found = {name: repeated.params[name] for name in _REPEATED}
    if options["opt_limit"] is not None:  # looking for the application that makes it fail
        found["opt_limit"] = options["opt_limit"]
    return found


_REPEATED = (
    *("files", "passes", "verify", "validate", "seeds", "counts", "shrink", "fill"),
    "opt_limit",
)
"""The options a reproducer decides."""


def _job(options: dict[str, Any], *, wants_report: bool) -> Job:
    from hloopt.driver import Settings

    settings = Settings(
        pipelines=options["pipelines"],
        passes=options["passes"],
        verify=options["verify"],
        wants_remarks=bool(_remark_filters(options)),
        wants_report=wants_report,
        memory=options["memory"],
        print_before=_names(options["print_before"]),
        print_after=_names(options["print_after"]),
        print_changed=_names(options["print_changed"]),
        dump_folder=options["dump_dir"],
        reproducer_folder=options["repro_dir"] or options["dump_dir"],
        print_style=options["print_style"] or "keep",
        print_changes=options["print_changes"],
        validate=options["validate"],
        seeds=options["seeds"],
        shrink=options["shrink"],
        devices=options["counts"],
        fill=options["fill"],
        steps=options["max_steps"],
        max_memory=options["max_memory"],
        time_limit=options["time_limit"],
        opt_limit=options["opt_limit"],
    )
    note_unreadable(settings.print_options())
    pipeline = settings.pipeline()  # mistakes are reported once, before any file is read
    _warn_of_absent(options, pipeline)
    return Job(
        settings=settings,
        output=None if options["check"] or options["show_diff"] else options["output"] or "-",
        split=options["split_input_file"],
        jobs=options["jobs"],
        wants_text_diff=options["show_diff"],
        titled=has_titles(options["files"]),
    )


def _names(given: tuple[str, ...]) -> frozenset[str]:
    from hloopt.pass_framework.registry import find_pass

    return frozenset("*" if name == "*" else find_pass(name).name for name in given)


def _remark_filters(options: dict[str, Any]) -> list[tuple[str, str | None]]:
    filters: list[tuple[str, str | None]] = []
    for text in options["remarks"]:
        kinds, _, name = text.partition(":")
        found = next(iter(_names((name,)))) if name else None
        for kind in kinds.split(","):
            if kind not in completion.REMARK_KINDS:
                raise click.BadParameter(
                    f"'{kind}' is none of {', '.join(completion.REMARK_KINDS)}",
                    param_hint="--remarks",
                )
            filters.append((kind, found))
    return filters


def _warn_of_absent(options: dict[str, Any], pipeline: Pipeline) -> None:
    """Say which passes that something is to be shown of do not run."""
    shown = {name for _, name in _remark_filters(options) if name}
    for option in ("print_before", "print_after", "print_changed"):
        shown |= _names(options[option]) - {"*"}
    for name in sorted(shown - {step.made.name for step in pipeline.passes()}):
        say(f"warning: {name} is not among the passes: nothing of it is shown")


def _finish(results: list[JobResult], options: dict[str, Any], *, wants_report: bool) -> int:
    from hloopt.files import write_whole

    exit_code = max((result.exit_code for result in results), default=0)
    if options["output_format"] == "json":
        from hloopt.reports.pipeline import outcome_to_json

        filters = _remark_filters(options)
        print_json(
            [
                {
                    "file": r.path,
                    "output": r.output,
                    "error": r.error,
                    "text_diff": r.text_diff,
                    "modules": [outcome_to_json(o, filters) for o in r.outcomes],
                }
                for r in results
            ]
        )
    for result in results:
        if result.error:
            print(result.error, file=sys.stderr)
        if result.text_diff and options["output_format"] == "text":
            write_whole("-", result.text_diff)
    if options["output_format"] == "text":
        _render(results, options, wants_report=wants_report)
    checking = options["check"] or options["show_diff"]
    if checking and exit_code == 0 and any(r.changed for r in results):
        if options["check"]:
            for result in results:
                if result.changed:
                    say(f"would change: {result.path}")
        return EXIT_FOUND
    return exit_code


def _has_notes(outcome: Outcome) -> bool:
    """Whether there is something to say that nobody asked for."""
    result = outcome.result
    return bool(
        result.warnings
        or result.notes
        or outcome.notes
        or (result.validation and result.validation.notes)
        or result.applications.limit is not None
    )


def _render(results: list[JobResult], options: dict[str, Any], *, wants_report: bool) -> None:
    filters = _remark_filters(options)
    if not (wants_report or filters or options["timing"] or options["statistics"]):
        results = [r for r in results if any(map(_has_notes, r.outcomes))]
    results = [result for result in results if result.outcomes]
    if not results:
        return
    from hloopt.reports import pipeline as report

    console: Console = make_console(options["color"], stderr=True)
    for result in results:
        if has_titles(options["files"]):
            print_title(console, result.path, is_first=result is results[0])
        for outcome in result.outcomes:
            if len(result.outcomes) > 1 and outcome.source is not None:
                line = f"{result.path}:{outcome.source.first_line}"
                print_title(console, line, is_first=outcome is result.outcomes[0])
            report.render_warnings(outcome, console)
            report.render_notes(outcome, console)
            report.render_not_validated(outcome, console)
            report.render_applications(outcome, console)
            if result.error:
                continue
            if filters:
                report.render_remarks(outcome, filters, console)
            if wants_report:
                report.render_outcome(outcome, console, side_by_side=options["side_by_side"])
            if options["timing"]:
                report.render_timing(outcome, console)
            if options["statistics"]:
                report.render_statistics(outcome, console)
        if wants_report and not result.error and result.output not in (None, "-"):
            console.print(f"wrote {result.output}", soft_wrap=True)
