"""The program and the conditions of a compile, named one by one or taken from a dump."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import say
from hloopt.commands.xla.options import compiler_options


def program_options(command: Callable[..., int]) -> Callable[..., int]:
    """FILE, `--from-dump`, `--module` and `compiler_options`.

    The command gets `file` and the last ones, with what is taken from a dump put into them, and
    `notes` that say what that is.
    """

    @wraps(command)
    def with_program(
        file: str | None, from_dump: str | None, module: str | None, **options: Any
    ) -> int:
        options["notes"] = []
        if from_dump is not None:
            file = _take(from_dump, module, file, options)
        elif module is not None:
            raise click.UsageError("--module is a module of --from-dump DIR")
        if file is None:
            raise click.UsageError("no input: name a FILE, or --from-dump DIR")
        if options["target"] is None:
            raise click.UsageError("Missing option '--target': cpu, NAME or FILE")
        return command(file=file, **options)

    declared = with_program
    for option in reversed(
        (
            click.argument(
                "file", metavar="[FILE]", required=False, shell_complete=completion.files
            ),
            compiler_options(needs_target=False),
            click.option(
                "--from-dump",
                metavar="DIR",
                help="compile as in a dump of XLA: its module, flags, target, autotuning results",
                shell_complete=completion.folders,
            ),
            click.option(
                "--module", metavar="NAME", help="of --from-dump: jit_step, 14, or 14.jit_step"
            ),
        )
    ):
        declared = option(declared)
    return declared


def _take(folder: str, module: str | None, file: str | None, options: dict[str, Any]) -> str:
    """Fill in what a dump has and nobody gave, and say it; the path of the program."""
    from hloopt.compilers.compiling import Compiler
    from hloopt.compilers.dumped import read_dump

    dumped = read_dump(folder, module)
    has_target = options["target"] is None
    if has_target:
        options["target"] = dumped.target
    if options["target"] is None:
        raise click.UsageError(f"--from-dump {folder} does not tell the target: give --target")
    compiler = Compiler.named(options["target"], options["plugin"])
    with tempfile.TemporaryDirectory(prefix="hloopt-xla-") as place:
        dumped.keep_accepted(compiler, Path(place))
    options["flags"] = (*dumped.texts(), *options["flags"])  # the last one counts
    options["notes"] = [
        f"from the dump: {note}"
        for note in dumped.notes(has_module=file is None, has_target=has_target)
    ]
    for note in options["notes"]:
        say(note)
    return file or dumped.module
