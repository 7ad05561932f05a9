"""`hloopt diff`: compare two modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    CONTENT_CLASSES,
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
from hloopt.commands.shared.cost_model_options import cost_model_options, preset_option

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.cost_models import CostModelChoice
    from hloopt.ir.module import Module
    from hloopt.memory.model import MemoryReport
    from hloopt.reports.diff.findings import ModuleDiff
    from hloopt.reports.schedule.comparison import ScheduleChange
    from hloopt.reports.schedule.run import Preset


@click.command(cls=HloCommand)
@click.argument("before", metavar="A", shell_complete=completion.files)
@click.argument("after", metavar="B", shell_complete=completion.files)
@click.option("--text", is_flag=True, help="show the texts of changed instructions")
@click.option("--side-by-side", is_flag=True, help="show them side by side, from 120 columns on")
@top_option("rows of each table", 20)
@click.option(
    "--with",
    "with_classes",
    multiple=True,
    metavar="CLASS",
    help="count a class of content that is left out by default: names",
    shell_complete=completion.content_classes,
)
@click.option(
    "--ignore",
    "ignored_classes",
    multiple=True,
    metavar="CLASS,…",
    help=f"leave classes of content out: {CONTENT_CLASSES}",
    shell_complete=completion.content_classes,
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
    from hloopt.reports.diff.comparison import NAMES
    from hloopt.reports.diff.terminal import render_diff

    check_pair(before, after)
    cost_model.resolved()
    ignored = as_classes(ignored_classes) | (NAMES - as_classes(with_classes))
    modules = read_module(before), read_module(after)
    found = _compare(modules, ignored, memory, cost_model, preset)
    if output_format == "json":
        print_json(_to_json(found))
    else:
        console = make_console(color)
        render_diff(found.diff, console, side_by_side=side_by_side, top=top, text=text)
        _render_costs(found, console)
    return 0 if found.diff.is_identical or exit_zero else EXIT_FOUND


class _Findings(NamedTuple):
    """The differences, with what they change."""

    diff: ModuleDiff
    memory: tuple[MemoryReport, MemoryReport] | None = None
    why_no_memory: str | None = None
    schedule: ScheduleChange | None = None
    why_no_schedule: str | None = None


def _compare(
    modules: tuple[Module, Module],
    ignored: frozenset[str],
    memory: bool | None,
    cost_model: CostModelChoice,
    preset: Preset | None,
) -> _Findings:
    """Compare two modules; memory and schedules only where they differ and are well formed."""
    from hloopt.reports.diff.comparison import diff_modules
    from hloopt.reports.memory.comparison import compare_memory
    from hloopt.reports.schedule.comparison import NotCompared, compare_schedules
    from hloopt.verifier.well_formed import why_invalid

    invalid = [error for error in map(why_invalid, modules) if error is not None]
    diff = diff_modules(*modules, ignored)
    if diff.is_identical:
        return _Findings(diff)
    if invalid:
        return _not_valid(diff, modules, memory, invalid[0].message)
    reports, note = compare_memory(*modules, memory)
    try:
        schedule = compare_schedules(*modules, cost_model, preset=preset)
    except NotCompared as reason:
        return _Findings(diff, reports, note, None, reason.message)
    return _Findings(diff, reports, note, schedule)


def _not_valid(
    diff: ModuleDiff, modules: tuple[Module, Module], memory: bool | None, reason: str
) -> _Findings:
    """The findings on modules that break a rule: their texts differ."""
    why_no_schedule = None
    if any(module.is_scheduled for module in modules):
        why_no_schedule = f"schedules are not compared: {reason}"
    why_no_memory = f"no memory report: {reason}" if memory is not False else None
    return _Findings(diff, None, why_no_memory, None, why_no_schedule)


def _to_json(found: _Findings) -> dict[str, object]:
    from hloopt.reports.diff.record import diff_to_json
    from hloopt.reports.memory.comparison_record import memory_change_to_json
    from hloopt.reports.schedule.comparison_record import schedule_change_to_json

    reports, schedule = found.memory, found.schedule
    reasons = (found.why_no_memory, found.why_no_schedule)
    return {
        **diff_to_json(found.diff),
        "memory": reports and memory_change_to_json(*reports, found.diff.partners),
        "schedule": None if schedule is None else schedule_change_to_json(schedule),
        "not_compared": [why for why in reasons if why is not None],
    }


def _render_costs(found: _Findings, console: Console) -> None:
    """Print the changes of memory and of the schedule, or why there are none."""
    from hloopt.reports.memory.comparison_terminal import render_memory_change
    from hloopt.reports.schedule.comparison_terminal import render_schedule_change

    if found.memory is not None:
        console.print()
        render_memory_change(*found.memory, console, found.diff.partners)
    elif found.why_no_memory is not None:
        console.print()
        console.print(found.why_no_memory, style="dim")
    if found.schedule is not None:
        console.print()
        render_schedule_change(found.schedule, console)
    elif found.why_no_schedule is not None:
        console.print()
        console.print(found.why_no_schedule, style="dim")
