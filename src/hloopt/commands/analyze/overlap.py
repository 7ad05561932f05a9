"""`hloopt analyze overlap`: what hides collectives, before and after passes."""

from __future__ import annotations

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    at_work,
    color_option,
    format_option,
    make_console,
    print_json,
)
from hloopt.commands.shared.schedule_options import ScheduleOptions, schedule_options


@click.command(cls=HloCommand)
@click.argument("before", metavar="FILE", shell_complete=completion.files)
@click.argument("after", required=False, metavar="[AFTER]", shell_complete=completion.files)
@schedule_options
@format_option
@color_option
def command(
    before: str, after: str | None, schedule: ScheduleOptions, output_format: str, color: str
) -> int:
    """Show how much of each collective other work hides, and what passes change about it.

    For each computation that has collectives, of a loop one trip: the bytes they move (of the
    larger of operands and result), how many of these are hidden, that is move while nothing waits
    for them, how long the device waits, and the buffers that the loop keeps from trip to trip. With
    a second module, the same after passes.

    The module is run as by `hloopt schedule`: with the same model the two tell the same times.
    One without a schedule gets that of latency-hiding-scheduler first, with all its collectives
    asynchronous: what could be hidden. docs/schedule.md explains the figures.

    \b
    hloopt opt step.hlo -p pipeline-collectives -o after.hlo
    hloopt analyze overlap step.hlo after.hlo --target b200
    hloopt analyze overlap step.hlo --profile step.pbtxt
    """
    from hloopt.reports.schedule.overlap import overlap_reports
    from hloopt.reports.schedule.overlap_record import overlap_change_to_json, overlap_to_json

    settings = schedule.settings()
    paths = [before] if after is None else [before, after]
    with at_work(paths) as each:
        modules = [schedule.load(path) for path in each]
        reports = overlap_reports(modules, settings)
    first, second = reports[0], reports[1] if after is not None else None
    if output_format == "json":
        data = [
            {"file": path, **overlap_to_json(report)}
            for path, report in zip(paths, reports, strict=True)
        ]
        if second is not None:
            data[1]["change"] = overlap_change_to_json(first, second)
        print_json(data)
        return 0
    from hloopt.reports.schedule.overlap_terminal import render_overlap

    render_overlap(first, second, make_console(color))
    return 0
