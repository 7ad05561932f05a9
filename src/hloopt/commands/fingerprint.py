"""`hloopt fingerprint`: hashes of what modules compute."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    CONTENT_CLASSES,
    EXIT_FOUND,
    EXIT_USAGE,
    HloCommand,
    format_option,
    print_json,
    say,
)
from hloopt.commands.shared.each_file import many_files_options, map_files

if TYPE_CHECKING:
    from hloopt.ir.module import Module


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.option("--same", is_flag=True, help="group equal files; exit 1 if there are several groups")
@click.option(
    "--with",
    "with_classes",
    multiple=True,
    metavar="CLASS,…",
    help="count classes of content that are left out by default: names, metadata, locations",
    shell_complete=completion.content_classes,
)
@click.option(
    "--without",
    "without_classes",
    multiple=True,
    metavar="CLASS,…",
    help=f"leave classes of content out, as `diff --ignore`: {CONTENT_CLASSES}",
    shell_complete=completion.content_classes,
)
@many_files_options
@format_option
def command(
    files: tuple[str, ...],
    same: bool,
    with_classes: tuple[str, ...],
    without_classes: tuple[str, ...],
    jobs: int,
    output_format: str,
) -> int:
    """Print a hash of what each module computes; exit 2 if one cannot be read.

    It is equal where `hloopt diff` finds no difference: names, metadata and the order of
    instructions that are in no schedule are out, bodies of custom calls are in. Which classes of
    content are left out is said on stderr, and is part of the hash.

    \b
    hloopt fingerprint --same host0/step.hlo host1/step.hlo
    """
    from hloopt.analysis.content import as_classes
    from hloopt.analysis.fingerprint import LEFT_OUT

    ignored = (LEFT_OUT - as_classes(with_classes)) | as_classes(without_classes)
    kept: dict[str, Module] = {}
    found, exit_code = _fingerprints(files, ignored, jobs, kept)
    groups: dict[str, list[str]] = {}
    for path, each in found.items():
        groups.setdefault(each.value, []).append(path)
    ranked = dict(sorted(groups.items(), key=lambda item: -len(item[1])))  # else as given
    differing = _differing(ranked, ignored, kept) if same else {}
    if output_format == "json":
        _print_as_json(found, ranked, differing, ignored)
    else:
        if same:
            _print_groups(ranked, differing)
        else:
            for path, each in found.items():
                _print_line(each.value, path)
        say(f"left out: {', '.join(sorted(ignored)) or 'nothing'}")
    if same and len(groups) > 1:
        exit_code = max(exit_code, EXIT_FOUND)
    return exit_code


class _Printed(NamedTuple):
    """The fingerprint of one file, or the error in place of it."""

    name: str = ""
    value: str = ""
    elided: int = 0
    """The number of constants whose values the text lacks."""
    error: str | None = None


def _fingerprints(
    files: tuple[str, ...], ignored: frozenset[str], jobs: int, kept: dict[str, Module]
) -> tuple[dict[str, _Printed], int]:
    """The fingerprints of the files that can be read, and the exit code of those that cannot."""
    from hloopt.files import find_inputs

    found: dict[str, _Printed] = {}
    exit_code = 0
    paths = find_inputs(files)
    look = partial(_look, ignored=ignored, kept=kept)
    printed = map_files(_Printed, look, paths, jobs, _lost, _is_whole)
    for path, each in zip(paths, printed, strict=True):
        if each.error is not None:
            print(each.error, file=sys.stderr)
            exit_code = EXIT_USAGE
        else:
            found[path] = each
            _note_elided(path, each, ignored)
    return found, exit_code


def _is_whole(printed: _Printed) -> bool:
    return printed.error is None


def _look(path: str, ignored: frozenset[str], kept: dict[str, Module]) -> _Printed:
    from hloopt.analysis.fingerprint import Fingerprints
    from hloopt.diagnostics import HloError, render_error
    from hloopt.verifier.well_formed import why_invalid

    try:
        module = _read(path, kept)
        problem = why_invalid(module)
        if problem is not None:
            raise problem
        found = Fingerprints(module, ignored)
        return _Printed(found.name, found.without(), found.elided)
    except HloError as error:
        return _Printed(error=render_error(error))


def _lost(path: str) -> _Printed:
    from hloopt.diagnostics import lost_process, render_error

    return _Printed(error=render_error(lost_process(path)))


def _read(path: str, kept: dict[str, Module]) -> Module:
    """The module of a file; that of standard input, which cannot be read again, is kept. Raises
    HloError."""
    from hloopt.files import STANDARD_STREAM, read_module

    module = kept.get(path) or read_module(path)
    if path == STANDARD_STREAM:
        kept[path] = module
    return module


def _note_elided(path: str, found: _Printed, ignored: frozenset[str]) -> None:
    from hloopt.diagnostics import counted

    if found.elided and "constants" not in ignored:
        constants = counted(found.elided, "constant")
        say(f"note: {path}: {constants} without values ({{...}}), taken as equal to each other")


def _print_groups(
    groups: dict[str, list[str]], differing: dict[str, tuple[str, ...] | None]
) -> None:
    first = next(iter(groups.values()), [""])[0]
    for group, paths in groups.items():
        for path in paths:
            _print_line(group, path)
        if group in differing:
            print(f"  {_difference(first, paths[0], differing[group])}")


def _print_line(value: str, path: str) -> None:
    from hloopt.diagnostics import printable

    print(f"{value}  {printable(path)}")


def _differing(
    groups: dict[str, list[str]], ignored: frozenset[str], kept: dict[str, Module]
) -> dict[str, tuple[str, ...] | None]:
    """The classes of content in which each group but the first differs from it."""
    from hloopt.analysis.fingerprint import Fingerprints, differing_classes

    if len(groups) < 2:
        return {}
    first, *others = (
        (group, Fingerprints(_read(paths[0], kept), ignored)) for group, paths in groups.items()
    )
    return {group: differing_classes(first[1], each) for group, each in others}


def _difference(first: str, other: str, classes: tuple[str, ...] | None) -> str:
    from hloopt.diagnostics import printable

    if classes is not None:
        return f"differs from the first group in {' and '.join(classes)} only"
    return printable(f"differs from the first group: hloopt diff {first} {other}")


def _print_as_json(
    found: dict[str, _Printed],
    groups: dict[str, list[str]],
    differing: dict[str, tuple[str, ...] | None],
    ignored: frozenset[str],
) -> None:
    ranks = {group: number for number, group in enumerate(groups)}
    print_json(
        [
            {
                "file": path,
                "module": each.name,
                "fingerprint": each.value,
                "ignored": sorted(ignored),
                "elided_constants": each.elided,
                "group": ranks[each.value],
                "differs_in": differing.get(each.value, ()) if differing else None,
            }
            for path, each in found.items()
        ]
    )
