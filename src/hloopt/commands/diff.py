"""`hloopt diff`: compare two modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.common import (
    EXIT_FOUND,
    HloCommand,
    check_pair,
    color_option,
    format_option,
    make_console,
    memory_option,
    print_json,
    top_option,
)
from hloopt.commands.cost_model_options import cost_model_options, preset_option

if TYPE_CHECKING:
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.schedule.run import Preset


@click.command(cls=HloCommand)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--text", is_flag=True, help="show the texts of changed instructions")
@click.option("--side-by-side", is_flag=True, help="show them side by side, from 120 columns on")
@top_option("rows of each table", 20)
@click.option(
    "--with",
    "with_classes",
    multiple=True,
    metavar="CLASS",
    help="count a class of content that is left out by default: names",
)
@click.option(
    "--ignore",
    "ignored_classes",
    multiple=True,
    metavar="CLASS,…",
    help="leave classes of content out: names, metadata, locations, layout, sharding, "
    "frontend-attributes, backend-config, channels, control, constants, order, header",
)
@click.option("--exit-zero", is_flag=True, help="exit 0 also where they differ")
@memory_option
@cost_model_options
@preset_option
@format_option
@color_option
def command(
    before: str,
    after: str,
    text: bool,
    side_by_side: bool,
    top: int,
    with_classes: tuple[str, ...],
    ignored_classes: tuple[str, ...],
    exit_zero: bool,
    memory: bool | None,
    cost_model: CostModelChoice,
    preset: Preset | None,
    output_format: str,
    color: str,
) -> int:
    """Compare two HLO modules; exit 1 if they differ.

    Instructions are matched by what they compute and by their neighbourhood, names decide between
    equals. Names are no difference: `--with names` counts them. Where modules differ,
    their memory is compared, too: each size, and what entered or left the peak. So are schedules
    with asynchronous operations, or all where times are asked for: how long they take, and how long
    they wait. Both are run by one model of times, on the streams of one preset. Of modules that
    break a rule (`hloopt verify`) only the texts are compared.

    \b
    hloopt diff before.hlo after.hlo --target h100_sxm --preset xla-gpu
    """
    from hloopt.analysis.content import as_classes
    from hloopt.files import read_module
    from hloopt.reports.diff.comparison import NAMES, diff_modules
    from hloopt.reports.diff.record import diff_to_json
    from hloopt.reports.diff.terminal import render_diff
    from hloopt.reports.memory.comparison import (
        compare_memory,
        memory_change_to_json,
        render_memory_change,
    )
    from hloopt.reports.schedule.comparison import (
        NotCompared,
        compare_schedules,
        render_schedule_change,
        schedule_change_to_json,
    )
    from hloopt.verifier.well_formed import why_invalid

    check_pair(before, after)
    cost_model.resolved()
    ignored = as_classes(ignored_classes) | (NAMES - as_classes(with_classes))
    modules = read_module(before), read_module(after)
    invalid = [error for error in map(why_invalid, modules) if error is not None]
    diff = diff_modules(*modules, ignored)
    reports, note = None, None
    schedule, why_no_schedule = None, None
    if diff.is_identical:
        pass
    elif invalid:
        note = f"no memory report: {invalid[0].message}" if memory is not False else None
        if any(module.is_scheduled for module in modules):
            why_no_schedule = f"schedules are not compared: {invalid[0].message}"
    else:
        reports, note = compare_memory(*modules, memory)
        try:
            schedule = compare_schedules(*modules, cost_model, preset=preset)
        except NotCompared as reason:
            why_no_schedule = reason.message
    if output_format == "json":
        change = None if reports is None else memory_change_to_json(*reports, diff.partners)
        times = None if schedule is None else schedule_change_to_json(schedule)
        print_json(
            {
                **diff_to_json(diff),
                "memory": change,
                "schedule": times,
                "not_compared": [why for why in (note, why_no_schedule) if why is not None],
            }
        )
    else:
        console = make_console(color)
        render_diff(diff, console, side_by_side=side_by_side, top=top, text=text)
        if reports is not None:
            console.print()
            render_memory_change(*reports, console, diff.partners)
        elif note is not None:
            console.print()
            console.print(note, style="dim")
        if schedule is not None:
            console.print()
            render_schedule_change(schedule, console)
        elif why_no_schedule is not None:
            console.print()
            console.print(why_no_schedule, style="dim")
    return 0 if diff.is_identical or exit_zero else EXIT_FOUND
