"""`hloopt memory`: how much memory a module needs."""

from __future__ import annotations

import click

from hloopt.commands.common import (
    EXIT_FOUND,
    HloCommand,
    at_work,
    color_option,
    format_option,
    make_console,
    parse_amount,
    print_json,
    top_option,
)


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@top_option("rows of the table of live buffers", 10)
@click.option("--allocations", default=0, metavar="N", help="list the N largest allocations")
@click.option(
    "--backend",
    type=click.Choice(["auto", "cpu", "gpu"]),
    default="auto",
    show_default=True,
    help="whose rules place the buffers; auto: the module tells",
)
@click.option(
    "--limit", callback=parse_amount, metavar="80GiB", help="exit with 1 if a module needs more"
)
@click.option(
    "--target", "target_name", metavar="NAME|FILE.yaml", help="the limit is this hardware's memory"
)
@format_option
@color_option
def command(
    files: tuple[str, ...],
    top: int,
    allocations: int,
    backend: str,
    limit: int | None,
    target_name: str | None,
    output_format: str,
    color: str,
) -> int:
    """Arguments, outputs, temporaries, the peak, and what is alive there.

    XLA's own buffer assignment, from the module's schedule: the numbers of its CompiledMemoryStats,
    with every allocation. A module that is not scheduled is put in the order of XLA's default
    memory scheduler. What the numbers rest on is printed below the tables.

    \b
    hloopt memory step.hlo --target h100_sxm
    hloopt memory dumps/ --limit 80GiB --format json
    """
    from hloopt.files import find_inputs, load
    from hloopt.memory import analyze_memory
    from hloopt.memory.backends import BACKENDS
    from hloopt.reports.memory import render_fit, render_memory
    from hloopt.reports.memory_json import memory_to_json

    if target_name is not None:
        if limit is not None:
            raise click.UsageError("--target and --limit both give a limit: use one of them")
        from hloopt.targets import load_target

        limit = load_target(target_name).memory_size
    rules = BACKENDS.get(backend)
    with at_work(find_inputs(files)) as paths:
        reports = [(path, analyze_memory(load(path), backend=rules)) for path in paths]
    fits = all(limit is None or report.statistics.total <= limit for _, report in reports)
    code = 0 if fits else EXIT_FOUND
    if output_format == "json":
        print_json(
            [{"file": path, **memory_to_json(report, limit=limit)} for path, report in reports]
        )
        return code
    console = make_console(color)
    for path, report in reports:
        if len(reports) > 1:
            console.print(path, style="bold")
        render_memory(report, console, top=top, allocations=allocations)
        if limit is not None:
            render_fit(report, console, limit)
    return code
