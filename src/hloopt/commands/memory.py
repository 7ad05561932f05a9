"""`hloopt memory`: how much memory a module needs."""

from __future__ import annotations

import click

from hloopt.commands.common import HloCommand, color_option, format_option, make_console, print_json


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("--top", default=10, show_default=True, help="rows of the table of live buffers")
@format_option
@color_option
def command(files: tuple[str, ...], top: int, output_format: str, color: str) -> int:
    """Arguments, outputs, temporaries, the peak, and what is alive there.

    An estimate by liveness over the schedule; what it assumes is printed below the tables.
    """
    from hloopt.files import find_inputs, load
    from hloopt.memory import analyze_memory
    from hloopt.reports.memory import memory_to_json, render_memory

    reports = [(path, analyze_memory(load(path))) for path in find_inputs(files)]
    if output_format == "json":
        print_json([{"file": path, **memory_to_json(report)} for path, report in reports])
        return 0
    console = make_console(color)
    for path, report in reports:
        if len(reports) > 1:
            console.print(path, style="bold")
        render_memory(report, console, top=top)
    return 0
