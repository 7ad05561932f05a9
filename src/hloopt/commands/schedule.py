"""`hloopt schedule`: when a module does what, and what waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    parse_size,
    top_option,
)
from hloopt.commands.shared.each_file import FileReport, many_files_options, report_files
from hloopt.commands.shared.origins import before_option, is_steady, origins_for
from hloopt.commands.shared.pictures import check_pictures, write_pictures
from hloopt.commands.shared.schedule_options import ScheduleOptions, schedule_options

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.run import ScheduleSettings


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@schedule_options
@click.option(
    "--loops",
    type=click.Choice(["trips", "once", "cost"]),
    default="trips",
    show_default=True,
    help="all trips, one, or what the cost model says of a loop, as in XLA's figures",
)
@click.option(
    "--limit",
    callback=parse_size,
    metavar="80GiB",
    help="the memory that what is in flight has to fit into; default: that of --target",
)
@click.option(
    "--explain",
    multiple=True,
    metavar="%NAME",
    help="instead say why latency-hiding-scheduler puts an instruction where it does",
)
@before_option
@top_option("operations shown; with --explain: nodes that were ready", 10, least=0)
@click.option(
    "--html",
    metavar="FILE",
    help="also write the timeline as a page",
    shell_complete=completion.files,
)
@click.option(
    "--trace",
    metavar="FILE",
    help="also write a trace for Perfetto and Chrome",
    shell_complete=completion.files,
)
@many_files_options
@format_option
@color_option
def command(schedule: ScheduleOptions, **options: Any) -> int:
    """A run of a module by its schedule: what is in flight when, what hides it, and what waits.

    Each asynchronous operation is shown with its time, how much of it is hidden by which other
    work, and why not more is. A module that is not scheduled is put in the order of XLA's default
    memory scheduler. What the figures rest on is printed below them; docs/schedule.md explains
    them.

    With --before the instruction that made each collective is named, and the reason.

    --scheduler changes how much may be in flight, and with --explain whatever the scheduler can be
    told.

    \b
    hloopt schedule step.hlo --target h100_sxm
    hloopt schedule step.hlo --profile step.pbtxt --top 20
    hloopt schedule step.hlo --target b200 --html timeline.html --trace trace.json
    hloopt schedule step.hlo --scheduler parallel_collective_overlap_limit=4
    hloopt schedule step.hlo --target h100_sxm --explain %all-gather-start.3
    """
    from hloopt.files import find_inputs

    paths = find_inputs(options["files"])
    check_pictures(options, paths)
    for name in ("html", "trace"):
        if options[name] is not None and options["explain"]:
            raise click.UsageError(f"--explain draws no timeline: leave out --{name}")
    settings = _settings(schedule, options)
    if options["explain"]:
        if options["before"] is not None:
            raise click.UsageError("--explain names no origins: leave out --before")
        return _explain(schedule, settings, options)
    from hloopt.reports.schedule.findings import ScheduleFindings

    def look(path: str) -> FileReport:
        module = schedule.load(path)
        origins = origins_for(module, options["before"])
        found = ScheduleFindings.of(module, settings, origins)
        if (options["html"] or options["trace"]) and _write_pictures(found, options):
            return FileReport(None, None)
        return FileReport(
            lambda: _to_json(found), lambda console: _render(found, console, top=options["top"])
        )

    return _report(look, options)


def _to_json(found: ScheduleFindings) -> dict[str, Any]:
    from hloopt.reports.schedule.record import schedule_to_json

    return schedule_to_json(found)


def _render(found: ScheduleFindings, console: Console, *, top: int) -> None:
    from hloopt.reports.schedule.terminal import render_schedule

    render_schedule(found, console, top=top)


def _report(look: Callable[[str], FileReport], options: dict[str, Any]) -> int:
    return report_files(
        options["files"],
        look,
        jobs=options["jobs"],
        output_format=options["output_format"],
        color=options["color"],
        has_effects=bool(options["html"] or options["trace"]) or not is_steady(options["before"]),
    )


def _settings(schedule: ScheduleOptions, options: dict[str, Any]) -> ScheduleSettings:
    """With the memory of a target that is named as the limit, where none is given."""
    limit, target = options["limit"], schedule.cost_model.target
    if limit is None and target is not None:
        from hloopt.targets import load_target

        limit = load_target(target).memory_size
    return schedule.settings(loops=options["loops"], memory_limit=limit)


def _explain(schedule: ScheduleOptions, settings: ScheduleSettings, options: dict[str, Any]) -> int:
    from hloopt.reports.schedule.explanation import ScheduleExplanation
    from hloopt.reports.schedule.explanation_record import explanation_to_json
    from hloopt.reports.schedule.explanation_terminal import render_explanation

    def look(path: str) -> FileReport:
        found = ScheduleExplanation.of(schedule.load(path), settings, options["explain"])
        return FileReport(
            lambda: explanation_to_json(found),
            lambda console: render_explanation(found, console, top=options["top"]),
        )

    return _report(look, options)


def _write_pictures(found: ScheduleFindings, options: dict[str, Any]) -> bool:
    """Write what was asked for; whether standard output has it, so nothing else may go there."""
    from hloopt.reports.schedule.timeline import Timeline

    timeline = Timeline.of(found)
    texts: dict[str, str] = {}
    if options["html"]:
        from hloopt.reports.schedule.page import schedule_page

        texts[options["html"]] = schedule_page(found, timeline)
    if options["trace"]:
        import json

        from hloopt.reports.schedule.trace import schedule_trace

        texts[options["trace"]] = json.dumps(schedule_trace(found, timeline))
    return write_pictures(texts)
