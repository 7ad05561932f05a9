"""`hloopt grep`: the instructions that a selector selects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    EXIT_USAGE,
    HloCommand,
    color_option,
    format_option,
    has_titles,
)
from hloopt.commands.shared.each_file import (
    FileReport,
    Printer,
    many_files_options,
    map_outcomes,
)

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.query import Selector
    from hloopt.reports.matches.findings import Matches

_Show: TypeAlias = "Callable[[Matches, Console, str, bool], None]"
"""Prints matches, given the path of their file and whether several files are looked at."""


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.argument("selector", metavar="SELECTOR")
@click.option("-c", "--count", "is_count", is_flag=True, help="print how many match in each file")
@click.option("-l", "--files-with-matches", "is_files", is_flag=True, help="print names of files")
@many_files_options
@format_option
@color_option
def command(
    files: tuple[str, ...],
    selector: str,
    is_count: bool,
    is_files: bool,
    jobs: int,
    output_format: str,
    color: str,
) -> int:
    """Print the instructions that a selector selects, a line each, and how many there are.

    docs/selectors.md describes selectors. Exit codes are those of grep: 0 where an instruction
    matches, 1 where none does, 2 where a file cannot be read, and where the selector is one %name
    that several computations have.

    \b
    hloopt grep step.hlo 'opcode=all-gather, bytes>1MiB, in-loop'
    hloopt grep -c dumps/ custom-call
    """
    from hloopt.files import find_inputs
    from hloopt.query import parse_selector

    if is_count and is_files:
        raise click.UsageError("--count and --files-with-matches cannot be used together")
    parsed = parse_selector(selector)
    is_json = output_format == "json"
    has_names = has_titles(files)
    is_listed = not (is_count or is_files)
    show = _count if is_count else _name if is_files else None
    printer = Printer(is_json=is_json, title_color=color if has_names and is_listed else None)
    look = partial(_look, selector=parsed, show=show, has_names=has_names)
    codes = set()
    for outcome in map_outcomes(look, find_inputs(files), jobs, is_json=is_json, color=color):
        printer.add(outcome)
        codes.add(outcome.exit_code)
    printer.close()
    worst = max(codes, default=EXIT_FOUND)
    return 0 if worst == EXIT_FOUND and 0 in codes else worst


def _look(path: str, selector: Selector, show: _Show | None, has_names: bool) -> FileReport:
    from hloopt.files import read_module
    from hloopt.reports.matches.findings import find_matches
    from hloopt.verifier.well_formed import why_invalid

    module = read_module(path)
    why_invalid(module)  # raises for what cannot be read; other faults are `verify`'s to tell
    found = find_matches(module, selector)
    code = EXIT_USAGE if found.is_ambiguous else 0 if found.instructions else EXIT_FOUND

    def to_json() -> dict[str, Any]:
        from hloopt.reports.matches.record import matches_to_json

        return matches_to_json(found, is_listed=show is None)

    def render(console: Console) -> None:
        from hloopt.reports.matches.terminal import render_matches

        if show is None:
            render_matches(found, console)
        else:
            show(found, console, path, has_names)

    is_silent = show is None and has_names and not found.instructions  # as grep is
    return FileReport(to_json, None if is_silent else render, code)


def _count(found: Matches, console: Console, path: str, has_names: bool) -> None:
    prefix = f"{path}: " if has_names else ""
    console.print(f"{prefix}{len(found.instructions)}", soft_wrap=True)


def _name(found: Matches, console: Console, path: str, has_names: bool) -> None:
    if found.instructions:
        console.print(path, soft_wrap=True)
