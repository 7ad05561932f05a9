"""Pictures that commands write beside what they print."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from hloopt.commands.shared.common import say


def check_pictures(options: Mapping[str, Any], paths: Sequence[str]) -> None:
    """`--html` and `--trace` are for one file, and for an output each. Raises UsageError."""
    given = {
        f"--{name}": options[name] for name in ("html", "trace") if options.get(name) is not None
    }
    for option in given:
        if len(paths) > 1:
            raise click.UsageError(f"{option} is for one file, not {len(paths)}")
    check_outputs(given, paths)


def check_outputs(outputs: Mapping[str, str], inputs: Sequence[str]) -> None:
    """Each option writes to a place of its own, and none over an input. Raises UsageError."""
    from hloopt.files import STANDARD_STREAM

    read = {os.path.realpath(path) for path in inputs}
    taken: dict[str, tuple[str, str]] = {}
    for option, output in outputs.items():
        if output != STANDARD_STREAM and os.path.realpath(output) in read:
            raise click.UsageError(f"{option} would overwrite the input {output}")
        other, path = taken.setdefault(_place(output), (option, output))
        if other != option:
            raise click.UsageError(f"{other} and {option} cannot both be written to {path}")


def _place(path: str) -> str:
    from hloopt.files import STANDARD_STREAM, is_stdout

    return STANDARD_STREAM if is_stdout(path) else os.path.realpath(path)


def write_pictures(texts: Mapping[str, str]) -> bool:
    """Write texts to their paths; whether stdout has one, so nothing else may go there."""
    from hloopt.files import is_stdout, write_whole

    for path, text in texts.items():
        write_whole(path, text)
        if not is_stdout(path):
            say(f"wrote {path}")
    return any(map(is_stdout, texts))
