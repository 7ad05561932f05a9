"""`hloopt sharding show`: values over the devices."""

from __future__ import annotations

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
    top_option,
)


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@click.option("--mesh", metavar="AXIS=SIZE,…", help="the mesh, to name axes: dp=2,tp=4")
@top_option("parameters, results, and largest values", 10)
@format_option
@color_option
def command(file: str, mesh: str | None, top: int, output_format: str, color: str) -> int:
    """Show how parameters, results and the largest values are cut over the devices.

    For each: its sharding in axes of the mesh, what a device has of it in shape and bytes, how
    many devices have the same part, and a picture of the devices of each part. Then the copies
    that cost most. All forms of shardings are read: lists of devices, iota, named, manual,
    partially replicated, maximal, and those of Shardy in modules that are not propagated yet.

    \b
    hloopt sharding show before_optimizations.hlo
    hloopt sharding show step.hlo --mesh dp=2,tp=4 --top 20
    """
    from hloopt.files import load
    from hloopt.reports.sharding.values import report_values

    report = report_values(load(file), mesh)
    if output_format == "json":
        from hloopt.reports.sharding.values_record import values_to_json

        print_json(values_to_json(report))
    else:
        from hloopt.reports.sharding.values_terminal import render_values

        render_values(report, make_console(color), top=top)
    return 0
