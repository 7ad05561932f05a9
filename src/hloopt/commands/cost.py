"""`hloopt cost`: what a module costs."""

from __future__ import annotations

import sys

import click

from hloopt.commands.common import (
    HloCommand,
    at_work,
    color_option,
    format_option,
    make_console,
    print_json,
    print_titles,
    top_option,
)


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "--target",
    "target_name",
    default="h100_sxm",
    show_default=True,
    metavar="NAME|FILE.yaml",
    help="the hardware to report against",
)
@click.option(
    "--by",
    type=click.Choice(["instruction", "computation", "scope", "opcode"]),
    default="instruction",
    show_default=True,
    help="what a row of the table is; scope: the first parts of op_name",
)
@click.option(
    "--depth", type=click.IntRange(1), default=3, show_default=True, help="parts of a scope"
)
@top_option("rows of the table", 10)
@click.option("--html", metavar="FILE", help="also write the roofline as a page; -: nothing else")
@format_option
@color_option
def command(
    files: tuple[str, ...],
    target_name: str,
    by: str,
    depth: int,
    top: int,
    html: str | None,
    output_format: str,
    color: str,
) -> int:
    """Flops, bytes with and without fusion, and the least time on a target.

    Counted as XLA's HloCostAnalysis does, with loops times their trip counts. What the figures
    assume is printed below the table.

    \b
    hloopt cost step.hlo --target b200 --by scope --depth 4
    hloopt cost step.hlo --html roofline.html
    """
    from hloopt.files import STANDARD_STREAM, find_inputs, load, write_whole
    from hloopt.reports.cost import analyze_cost, cost_to_json
    from hloopt.targets import load_target

    target = load_target(target_name)
    paths = find_inputs(files)
    if html is not None and len(paths) > 1:
        raise click.UsageError(f"--html is for one file, not {len(paths)}")
    with at_work(paths) as each:
        reports = [(path, analyze_cost(load(path), target)) for path in each]
    if html is not None:
        from hloopt.reports.cost_html import cost_page

        write_whole(html, cost_page(reports[0][1]))
        if html == STANDARD_STREAM:
            return 0
        print(f"wrote {html}", file=sys.stderr)
    if output_format == "json":
        print_json(
            [{"file": path, **cost_to_json(report, by, depth=depth)} for path, report in reports]
        )
        return 0
    from hloopt.reports.cost_text import render_cost

    console = make_console(color)
    for report in print_titles(console, reports):
        render_cost(report, console, by=by, depth=depth, top=top)
    return 0
