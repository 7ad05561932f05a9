"""`hloopt cost`: what a module costs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    scope_depth_option,
    top_option,
)
from hloopt.commands.shared.cost_model_options import cost_model_options, preset_option
from hloopt.commands.shared.each_file import FileReport, many_files_options, report_files
from hloopt.commands.shared.pictures import check_pictures, write_pictures

if TYPE_CHECKING:
    from rich.console import Console

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
@scope_depth_option(3)
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
@many_files_options
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
    jobs: int,
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
    report = partial(report_files, files, jobs=jobs, output_format=output_format, color=color)
    if latency:
        if by != "instruction" or html is not None:
            raise click.UsageError("--latency has no --by and no --html")
        from hloopt.reports.schedule.run import ScheduleSettings

        cost_model.resolved()
        settings = ScheduleSettings(cost_model=cost_model, preset=preset)
        return report(partial(_times, settings=settings, top=top))
    if cost_model.name or preset:
        raise click.UsageError("--cost-model and --preset are about times: say --latency, too")
    if cost_model.concerns_tables:
        raise click.UsageError("tables of measurements are about times: say --latency, too")
    from hloopt.files import find_inputs, load

    check_pictures({"html": html}, find_inputs(files))
    target = _target(cost_model, html)

    def look(path: str) -> FileReport:
        found = _analyze(load(path), target, cost_model)
        if html is not None and _write_page(found, html):
            return FileReport(None, None)
        return FileReport(
            lambda: _to_json(found, by, depth=depth),
            lambda console: _render(found, console, by=by, depth=depth, top=top),
        )

    return report(look, has_effects=html is not None)


def _target(cost_model: CostModelChoice, html: str | None) -> Target | None:
    """The target that is named. Raises HloError where the picture lacks one."""
    from hloopt.cost_models import needs_target
    from hloopt.targets import load_target

    target = None if cost_model.target is None else load_target(cost_model.target)
    if html is not None and target is None:
        raise needs_target("the picture of --html")
    return target


def _write_page(found: CostReport, html: str) -> bool:
    from hloopt.reports.cost.page import cost_page

    return write_pictures({html: cost_page(found)})


def _to_json(found: CostReport, by: str, *, depth: int) -> dict[str, Any]:
    from hloopt.reports.cost.record import cost_to_json

    return cost_to_json(found, by, depth=depth)


def _render(found: CostReport, console: Console, *, by: str, depth: int, top: int) -> None:
    from hloopt.reports.cost.terminal import render_cost

    render_cost(found, console, by=by, depth=depth, top=top)


def _analyze(module: Module, target: Target | None, choice: CostModelChoice) -> CostReport:
    """With the measured times of a profile or cost table, where one is given."""
    from hloopt.reports.cost.findings import analyze_cost
    from hloopt.reports.cost.measured import MeasuredTimes

    return analyze_cost(module, target, MeasuredTimes.of(module, choice))


def _times(path: str, settings: ScheduleSettings, top: int) -> FileReport:
    """Report the times of a module."""
    from hloopt.files import load
    from hloopt.reports.schedule.latency import analyze_latency
    from hloopt.reports.schedule.latency_record import latency_to_json
    from hloopt.reports.schedule.latency_terminal import render_latency

    found = analyze_latency(load(path), settings)
    return FileReport(
        lambda: latency_to_json(found), lambda console: render_latency(found, console, top=top)
    )
