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
    """FILE, `--from-dump`, `--module` and `compiler_options`, of which the command gets `file` and
    those of the last: what is taken from a dump is put into them."""

    @wraps(command)
    def with_program(
        file: str | None, from_dump: str | None, module: str | None, **options: Any
    ) -> int:
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
    from hloopt.compilers.dumped import accepted, read_dump

    dumped = read_dump(folder, module)
    if options["target"] is None:
        options["target"] = dumped.target
    if options["target"] is None:
        raise click.UsageError(f"--from-dump {folder} does not tell the target: give --target")
    notes = dumped.notes
    if dumped.flags:
        compiler = Compiler.named(options["target"], options["plugin"])
        with tempfile.TemporaryDirectory(prefix="hloopt-xla-") as place:
            flags, refused = accepted(dumped.flags, compiler, Path(place))
        if refused:
            notes = [*notes, f"flags that were refused: {', '.join(refused)}"]
        own = (f"{name}={value}" for name, value in flags.items())
        options["flags"] = (*own, *options["flags"])  # the last one counts
    for note in notes:
        say(f"from the dump: {note}")
    return file or dumped.module
