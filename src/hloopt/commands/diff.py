"""`hloopt diff`: compare two modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.module_comparison import ModuleComparison
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
    from hloopt.reports.diff.comparison import NAMES

    check_pair(before, after)
    cost_model.resolved()
    found = _compare(
        before,
        after,
        as_classes(ignored_classes) | (NAMES - as_classes(with_classes)),
        memory,
        cost_model,
        preset,
    )
    _show(found, output_format, color, side_by_side=side_by_side, top=top, text=text)
    return 0 if found.diff.is_identical or exit_zero else EXIT_FOUND


def show_difference(before: str, after: str, output_format: str, color: str, *, top: int) -> int:
    """As the command, without options; the exit code."""
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.diff.comparison import NAMES

    found = _compare(before, after, NAMES, None, CostModelChoice(), None)
    _show(found, output_format, color, side_by_side=False, top=top, text=False)
    return 0 if found.diff.is_identical else EXIT_FOUND


def _compare(
    before: str,
    after: str,
    ignored: frozenset[str],
    memory: bool | None,
    cost_model: CostModelChoice,
    preset: Preset | None,
) -> ModuleComparison:
    from hloopt.files import read_module
    from hloopt.reports.module_comparison import compare_modules

    modules = read_module(before), read_module(after)
    return compare_modules(modules, ignored, memory, cost_model, preset)


def _show(
    found: ModuleComparison,
    output_format: str,
    color: str,
    *,
    side_by_side: bool,
    top: int,
    text: bool,
) -> None:
    if output_format == "json":
        print_json(_to_json(found))
        return
    from hloopt.reports.module_comparison import render_comparison

    render_comparison(found, make_console(color), side_by_side=side_by_side, top=top, text=text)


def _to_json(found: ModuleComparison) -> dict[str, object]:
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
