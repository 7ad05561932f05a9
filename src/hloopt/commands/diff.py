"""`hloopt diff`: compare two modules."""

from __future__ import annotations

import click

from hloopt.commands.common import (
    EXIT_FOUND,
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
    top_option,
)


@click.command(cls=HloCommand)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--text", is_flag=True, help="show the texts of changed instructions")
@click.option("--side-by-side", is_flag=True, help="show them side by side, from 120 columns on")
@top_option("rows of each table", 20)
@format_option
@color_option
def command(
    before: str, after: str, text: bool, side_by_side: bool, top: int, output_format: str,
    color: str,
) -> int:  # fmt: skip
    """Compare two HLO modules; exit 1 if they differ.

    Computations are matched by name, then by structure; instructions likewise.
    """
    from hloopt.files import read_module
    from hloopt.reports.diff import diff_to_json, render_diff
    from hloopt.reports.module_diff import diff_modules

    diff = diff_modules(read_module(before), read_module(after))
    if output_format == "json":
        print_json(diff_to_json(diff))
    else:
        console = make_console(color)
        render_diff(diff, console, side_by_side=side_by_side, top=top, text=text)
    return 0 if diff.is_identical else EXIT_FOUND
