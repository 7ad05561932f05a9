"""`--watch`: go on, and report on files as they appear."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from hloopt.commands.shared.common import Function, say
from hloopt.commands.shared.parts import shard

SECONDS = 2.0
"""Between two looks at a folder."""


def watch_option(command: Function) -> Function:
    """`--watch`."""
    return click.option(
        "--watch", is_flag=True, help="go on: report on new files as they appear, until Ctrl-C"
    )(command)


_ENDLESS_FORMATS = ("text", "concise", "github")
"""Formats whose output may go on and on."""
_ONCE = ("html", "trace", "output", "write_baseline", "update_baseline", "module")


def check_watch(options: Mapping[str, Any]) -> None:
    """`--watch` has no end, so nothing that is written at the end. Raises UsageError."""
    if not options["watch"]:
        return
    if shard() is not None:
        raise click.UsageError("--watch and --shard do not go together")
    if options["output_format"] not in _ENDLESS_FORMATS:
        formats = " or ".join(_ENDLESS_FORMATS)
        raise click.UsageError(f"--watch goes on and on: --format {formats}")
    for name in _ONCE:
        if options.get(name):
            raise click.UsageError(f"--watch has no --{name.replace('_', '-')}")


def appearing(sizes: Callable[[], Mapping[str, int]]) -> Iterator[list[str]]:
    """New files, again and again, for ever: those whose size was the same at two looks.

    `sizes` lists the files there are. A file that changes its size later is new again.
    """
    say("watching: Ctrl-C ends it")
    known: dict[str, int] = {}
    before: Mapping[str, int] = {}
    while True:
        now = sizes()
        new = [path for path, size in now.items() if before.get(path) == size != known.get(path)]
        if new:
            known.update((path, now[path]) for path in new)
            yield new
        before = now
        time.sleep(SECONDS)


def input_sizes(given: tuple[str, ...]) -> dict[str, int]:
    """The inputs there are now, with their sizes; none is no mistake while they are awaited."""
    from hloopt.diagnostics import HloError
    from hloopt.files import find_inputs
    from hloopt.files.storage import size_of

    found: dict[str, int] = {}
    try:
        paths = find_inputs(given)
    except HloError:
        return found
    for path in paths:
        try:
            found[path] = size_of(path)
        except OSError:  # it is gone again
            continue
    return found
