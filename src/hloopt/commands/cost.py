"""`hloopt cost`: what a module costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    at_work,
    check_pictures,
    color_option,
    format_option,
    make_console,
    print_json,
    print_titles,
    top_option,
    write_pictures,
)
from hloopt.commands.shared.cost_model_options import cost_model_options, preset_option

if TYPE_CHECKING:
    from hloopt.cost_models import CostModelChoice
    from hloopt.ir import Module
    from hloopt.reports.cost.findings import CostReport
    from hloopt.reports.schedule.run import Preset, ScheduleSettings
    from hloopt.targets import Target


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.option(
    "--by",
    type=click.Choice(["instruction", "computation", "scope", "source", "opcode"]),
    default="instruction",
    show_default=True,
    help="what a row of the table is; scope: the first parts of op_name; source: a line of the "
    "program",
)
@click.option(
    "--depth", type=click.IntRange(1), default=3, show_default=True, help="parts of a scope"
)
@top_option("rows of the table", 10)
@click.option("--latency", is_flag=True, help="times by a cost model, and where they are from")
@cost_model_options
@preset_option
@click.option(
    "--html",
    metavar="FILE",
    help="also write the picture and a table as a page; -: nothing else",
    shell_complete=completion.files,
)
@format_option
@color_option
def command(
    files: tuple[str, ...],
    by: str,
    depth: int,
    top: int,
    html: str | None,
    latency: bool,
    cost_model: CostModelChoice,
    preset: Preset | None,
    output_format: str,
    color: str,
) -> int:
    """Flops, bytes with and without fusion, and with --target the least time.

    Counted as XLA's HloCostAnalysis does, with loops times their trip counts. What the figures
    assume is printed below the table. The picture is of where the time goes by flops per byte; with
    measured times (--profile, --cost-table) it is a roofline with a point per instruction. The
    times of --latency are those of `hloopt schedule`.

    \b
    hloopt cost step.hlo --target b200 --by scope --depth 4
    hloopt cost step.hlo --target h100_sxm --html cost.html
    hloopt cost step.hlo --target h100_sxm --profile pgle.pbtxt --html roofline.html
    hloopt cost step.hlo --latency --profile pgle.pbtxt
    """
    if latency:
        if by != "instruction" or html is not None:
            raise click.UsageError("--latency has no --by and no --html")
        from hloopt.reports.schedule.run import ScheduleSettings

        cost_model.resolved()
        settings = ScheduleSettings(cost_model=cost_model, preset=preset)
        return _show_times(files, settings, top, output_format, color)
    if cost_model.name or preset:
        raise click.UsageError("--cost-model and --preset are about times: say --latency, too")
    if cost_model.concerns_tables:
        raise click.UsageError("tables of measurements are about times: say --latency, too")
    reports = _reports(files, cost_model, html)
    if html is not None:
        from hloopt.reports.cost.page import cost_page

        if write_pictures({html: cost_page(reports[0][1])}):
            return 0
    if output_format == "json":
        from hloopt.reports.cost.record import cost_to_json

        print_json(
            [{"file": path, **cost_to_json(report, by, depth=depth)} for path, report in reports]
        )
        return 0
    from hloopt.reports.cost.terminal import render_cost

    console = make_console(color)
    for report in print_titles(console, reports, files):
        render_cost(report, console, by=by, depth=depth, top=top)
    return 0


def _reports(
    files: tuple[str, ...], cost_model: CostModelChoice, html: str | None
) -> list[tuple[str, CostReport]]:
    """The costs of each file. Raises HloError where the picture lacks a target."""
    from hloopt.cost_models import needs_target
    from hloopt.files import find_inputs, load
    from hloopt.targets import load_target

    paths = find_inputs(files)
    check_pictures({"html": html}, paths)
    target = None if cost_model.target is None else load_target(cost_model.target)
    if html is not None and target is None:
        raise needs_target("the picture of --html")
    with at_work(paths) as each:
        return [(path, _analyze(load(path), target, cost_model)) for path in each]


def _analyze(module: Module, target: Target | None, choice: CostModelChoice) -> CostReport:
    """With the measured times of a profile or cost table, where one is given."""
    from hloopt.reports.cost.findings import analyze_cost
    from hloopt.reports.cost.measured import MeasuredTimes

    return analyze_cost(module, target, MeasuredTimes.of(module, choice))


def _show_times(
    files: tuple[str, ...], settings: ScheduleSettings, top: int, output_format: str, color: str
) -> int:
    """Report the times of modules."""
    from hloopt.files import find_inputs, load
    from hloopt.reports.schedule.latency import analyze_latency
    from hloopt.reports.schedule.latency_record import latency_to_json

    with at_work(find_inputs(files)) as each:
        reports = [(path, analyze_latency(load(path), settings)) for path in each]
    if output_format == "json":
        print_json([{"file": path, **latency_to_json(report)} for path, report in reports])
        return 0
    from hloopt.reports.schedule.latency_terminal import render_latency

    console = make_console(color)
    for report in print_titles(console, reports, files):
        render_latency(report, console, top=top)
    return 0
