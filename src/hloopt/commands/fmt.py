"""`hloopt fmt`: write HLO in XLA's form."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    EXIT_USAGE,
    HloCommand,
    note_unreadable,
    print_style_option,
    say,
)
from hloopt.commands.shared.each_file import many_files_options, map_files
from hloopt.diagnostics import HloError, Source, counted, lost_process, render_error

if TYPE_CHECKING:
    from hloopt.ir.module import Module
    from hloopt.text.print_options import PrintOptions


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.option("--check", is_flag=True, help="write nothing; exit 1 if a file would change")
@click.option("--diff", "show_diff", is_flag=True, help="as --check, and show what would change")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="where to write; default: the file itself",
    shell_complete=completion.files,
)
@print_style_option
@many_files_options
def command(
    files: tuple[str, ...],
    check: bool,
    show_diff: bool,
    output: str | None,
    print_style: str | None,
    print_changes: tuple[str, ...],
    jobs: int,
) -> int:
    """Format HLO files.

    FILE is a file, a folder or - (standard input, written to standard output). The result has
    XLA's default form with constants in full; comments stay, and nothing moves that need not.
    With --print it is what XLA itself would print in that style, without comments. The styles
    fingerprint and module-fingerprint leave names out: no reader of HLO takes them. A proto
    becomes text: give -o PATH.

    \b
    hloopt fmt tests/
    hloopt fmt --check dumps/
    hloopt fmt step.hlo --print canonical -o -
    hloopt fmt step.hlo --print-option inline_source -o -
    """
    from hloopt.files import STANDARD_STREAM, find_inputs, write_whole
    from hloopt.text.print_options import print_options

    paths = find_inputs(files)
    writes = not (check or show_diff)
    if output is not None and len(paths) > 1:
        raise click.UsageError("-o takes a single input")
    if writes and print_style and output is None and paths != [STANDARD_STREAM]:
        raise click.UsageError("--print drops comments, some styles more: give -o PATH")
    options = print_options(print_style or "formatted", print_changes)
    if writes:
        note_unreadable(options)
    job = _Job(options, output, print_style is not None, writes, show_diff)
    changed, failed = 0, 0
    formatted = map_files(_Done, job.run, paths, jobs, _lost, None if writes else _is_whole)
    for path, done in zip(paths, formatted, strict=True):
        if done.error is not None:
            print(done.error, file=sys.stderr)
            failed += 1
        elif done.is_changed:
            changed += 1
            if show_diff:
                write_whole(STANDARD_STREAM, done.diff)
            elif check:
                say(f"would reformat: {path}")
    if output is None and paths != [STANDARD_STREAM]:
        _summarize(changed, len(paths) - changed - failed, failed, writes=writes)
    if failed:
        return EXIT_USAGE
    return EXIT_FOUND if changed and not writes else 0


class _Done(NamedTuple):
    """The fate of one file."""

    is_changed: bool = False
    diff: str = ""
    error: str | None = None


def _is_whole(done: _Done) -> bool:
    return done.error is None


class _Job(NamedTuple):
    """The work to do on each file."""

    options: PrintOptions
    output: str | None
    is_canonical: bool
    writes: bool
    wants_diff: bool

    def run(self, path: str) -> _Done:
        """Format a file, and write it where that is wanted."""
        from hloopt.files import STANDARD_STREAM, write_whole
        from hloopt.reports.console.text_diff import unified_diff

        elsewhere = bool(self.output) or path == STANDARD_STREAM
        try:
            found = _read(path, takes_proto=self.writes and elsewhere)
            before = found.text if isinstance(found, Source) else ""
            text = _format(found, self.options, is_canonical=self.is_canonical)
            if self.writes and (elsewhere or text != before):
                write_whole(self.output or path, text)
        except HloError as error:
            return _Done(error=render_error(error))
        is_changed = text != before
        return _Done(
            is_changed,
            unified_diff(before, text, path) if is_changed and self.wants_diff else "",
        )


def _lost(path: str) -> _Done:
    return _Done(error=render_error(lost_process(path)))


def _read(path: str, *, takes_proto: bool) -> Source | Module:
    """The text of a file, or the module of a proto. Raises HloError."""
    from hloopt.files import read_text_or_module

    found = read_text_or_module(path)
    if not isinstance(found, Source) and not takes_proto:
        raise HloError(
            f"{path} is an HLO proto, where text is needed",
            help="-o PATH writes its module as text",
            code="HLO012",
        )
    return found


def _format(source: Source | Module, options: PrintOptions, *, is_canonical: bool) -> str:
    from hloopt.split import split_source
    from hloopt.text import parse_module, print_module
    from hloopt.text.formatter import format_source

    if not isinstance(source, Source):
        text = print_module(source, options)
        if is_canonical:
            return text
        source = Source("", text)
    if not is_canonical:
        return format_source(source, options)
    file = split_source(source)
    return file.join([print_module(parse_module(chunk), options) for chunk in file.chunks])


def _summarize(changed: int, unchanged: int, failed: int, *, writes: bool) -> None:
    would = "" if writes else "would be "
    parts = [
        f"{counted(changed, 'file')} {would}reformatted" if changed else "",
        f"{counted(unchanged, 'file')} {'left' if writes else 'already'} "
        f"{'unchanged' if writes else 'formatted'}" if unchanged else "",
        f"{counted(failed, 'file')} not read" if failed else "",
    ]  # fmt: skip
    say(", ".join(part for part in parts if part))
