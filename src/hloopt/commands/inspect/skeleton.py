"""`hloopt skeleton`: a program's plot on one screen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import HloCommand, color_option, format_option
from hloopt.commands.shared.cost_model_options import cost_model_options
from hloopt.commands.shared.each_file import FileReport, many_files_options, report_files

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.cost_models import CostModelChoice


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.option(
    "--depth", type=click.IntRange(1), help="show all down to this depth; default: what fits"
)
@click.option(
    "--lines", type=click.IntRange(1), default=48, show_default=True, help="lines of the plot"
)
@cost_model_options
@many_files_options
@format_option
@color_option
def command(
    files: tuple[str, ...],
    depth: int | None,
    lines: int,
    cost_model: CostModelChoice,
    jobs: int,
    output_format: str,
    color: str,
) -> int:
    """Print what a program does, in the order in which it runs, on one screen.

    Loops with their trips, branches, collectives with their data and groups, matrix products with
    their sizes, custom calls. What is repeated is folded, what one scope of op_name has stands
    together; the costliest parts are shown in detail, of the others what they consist of. With
    shares of flops and bytes, and with --target or another model of time of the time.

    \b
    hloopt skeleton step.hlo
    hloopt skeleton step.hlo --target h100_sxm --depth 2
    """
    look = partial(_look, depth=depth, lines=lines, cost_model=cost_model)
    return report_files(files, look, jobs=jobs, output_format=output_format, color=color)


def _look(path: str, *, depth: int | None, lines: int, cost_model: CostModelChoice) -> FileReport:
    from hloopt.files import load
    from hloopt.reports.schedule.run import run_times
    from hloopt.reports.skeleton.program import find_skeleton

    module = load(path)
    found = find_skeleton(module, run_times(module, cost_model) if cost_model.is_choice else None)

    def render(console: Console) -> None:
        from hloopt.reports.skeleton.terminal import render_skeleton

        render_skeleton(found, console, depth=depth, lines=lines)

    def to_json() -> dict[str, Any]:
        from hloopt.reports.skeleton.record import skeleton_to_json

        return skeleton_to_json(found)

    return FileReport(to_json, render)
