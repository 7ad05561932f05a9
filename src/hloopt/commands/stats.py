"""`hloopt stats`: what modules have, each operation counted once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    HloCommand,
    at_work,
    check_pair,
    color_option,
    format_option,
    make_console,
    print_json,
    print_titles,
    top_option,
)

if TYPE_CHECKING:
    from hloopt.reports.stats.inventory import Inventory


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.option("--diff", "is_diff", is_flag=True, help="compare two files; exit 1 if they differ")
@top_option("rows of each table", 10)
@format_option
@color_option
def command(files: tuple[str, ...], is_diff: bool, top: int, output_format: str, color: str) -> int:
    """Collectives, custom calls, products, loops, opcodes, parameters, results.

    Each operation counts once: a start with its done, a collective within an async-start or a
    fusion. Runs are those of one run of the module; payload and wire bytes are defined in
    docs/stats.md.

    \b
    hloopt stats step.hlo
    hloopt stats --diff before.hlo after.hlo
    """
    from hloopt.files import find_inputs

    if is_diff:
        if len(files) != 2:
            raise click.UsageError("--diff compares two files")
        check_pair(*files)
        (_, before), (_, after) = _take(files)
        return _show_changes(before, after, output_format, color)
    found = _take(find_inputs(files))
    if output_format == "json":
        from hloopt.reports.stats.record import inventory_to_json

        print_json([{"file": path, **inventory_to_json(each)} for path, each in found])
        return 0
    from hloopt.reports.stats.terminal import render_inventory

    console = make_console(color)
    for each in print_titles(console, found, files):
        render_inventory(each, console, top=top)
    return 0


def _take(paths: list[str] | tuple[str, ...]) -> list[tuple[str, Inventory]]:
    from hloopt.files import load
    from hloopt.reports.stats.inventory import take_inventory

    with at_work(paths) as each:
        return [(path, take_inventory(load(path))) for path in each]


def _show_changes(before: Inventory, after: Inventory, output_format: str, color: str) -> int:
    from hloopt.reports.stats.record import changes, changes_to_json

    found = list(changes(before, after))
    if output_format == "json":
        print_json(changes_to_json(found))
    else:
        from hloopt.reports.stats.terminal import render_changes

        render_changes(found, make_console(color))
    return EXIT_FOUND if found else 0
