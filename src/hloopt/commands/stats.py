"""`hloopt stats`: what modules have, each operation counted once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    HloCommand,
    check_pair,
    color_option,
    format_option,
    make_console,
    print_json,
    top_option,
)
from hloopt.commands.shared.each_file import FileReport, many_files_options, report_files
from hloopt.commands.shared.origins import before_option, is_steady, origins_for

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.reports.stats.inventory import Inventory


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.option("--diff", "is_diff", is_flag=True, help="compare two files; exit 1 if they differ")
@before_option
@top_option("rows of each table", 10)
@many_files_options
@format_option
@color_option
def command(
    files: tuple[str, ...],
    is_diff: bool,
    before: str | None,
    top: int,
    jobs: int,
    output_format: str,
    color: str,
) -> int:
    """Collectives, custom calls, products, loops, opcodes, parameters, results.

    Each operation counts once: a start with its done, a collective within an async-start or a
    fusion. Runs are those of one run of the module; payload and wire bytes are defined in
    docs/stats.md. With --before the instruction that made each collective is named, and the reason.

    \b
    hloopt stats step.hlo
    hloopt stats after_spmd.hlo --before before_spmd.hlo
    hloopt stats --diff before.hlo after.hlo
    """
    if is_diff:
        if len(files) != 2:
            raise click.UsageError("--diff compares two files")
        if before is not None:
            raise click.UsageError("--diff names no origins: leave out --before")
        check_pair(*files)
        return _show_changes(_take(files[0]), _take(files[1]), output_format, color)

    def look(path: str) -> FileReport:
        found = _take(path, before)
        return FileReport(lambda: _to_json(found), lambda console: _render(found, console, top=top))

    return report_files(
        files,
        look,
        jobs=jobs,
        output_format=output_format,
        color=color,
        has_effects=not is_steady(before),
    )


def _take(path: str, before: str | None = None) -> Inventory:
    from hloopt.files import load
    from hloopt.reports.stats.inventory import take_inventory

    module = load(path)
    return take_inventory(module, origins_for(module, before))


def _to_json(found: Inventory) -> dict[str, Any]:
    from hloopt.reports.stats.record import inventory_to_json

    return inventory_to_json(found)


def _render(found: Inventory, console: Console, *, top: int) -> None:
    from hloopt.reports.stats.terminal import render_inventory

    render_inventory(found, console, top=top)


def _show_changes(before: Inventory, after: Inventory, output_format: str, color: str) -> int:
    from hloopt.reports.stats.record import changes, changes_to_json

    found = list(changes(before, after))
    if output_format == "json":
        print_json(changes_to_json(found))
    else:
        from hloopt.reports.stats.terminal import render_changes

        render_changes(found, make_console(color))
    return EXIT_FOUND if found else 0
