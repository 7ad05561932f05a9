"""`hloopt xla isolate`: one of XLA's passes on a module."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import Function, HloCommand, format_option, print_json, say
from hloopt.commands.xla.inputs import program_options
from hloopt.commands.xla.options import chosen, repeatable, waiting, write_hlo

if TYPE_CHECKING:
    from hloopt.compilers.compiling import Compiler
    from hloopt.compilers.isolation import Run


def place_option(command: Function) -> Function:
    """`--place N`, as `number_of` takes it."""
    return click.option(
        "--place",
        type=click.IntRange(1),
        metavar="N",
        help="which of its runs; default: the first that changed something",
    )(command)


@click.command(cls=HloCommand)
@program_options
@click.option(
    "--pass", "pass_name", required=True, metavar="NAME", help="the pass, as XLA names it"
)
@place_option
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="write the module here; default: stdout",
    shell_complete=completion.files,
)
@format_option
def command(
    file: str, pass_name: str, place: int | None, output: str | None, **options: Any
) -> int:
    """Run one of XLA's passes on a module, with the options that it has in XLA's pipeline.

    All other passes are switched off by name, in a compile for a target without a device. XLA's
    scheduling and what is in no pipeline run, too, but behind it. `--format json` lists the runs.

    \b
    hloopt xla isolate step.hlo --target h100_sxm --pass algsimp
    hloopt xla isolate step.hlo --target cpu --pass dce --format json
    hloopt xla isolate step.hlo --target h100_sxm --pass collective-pipeliner-forward \\
        --flag xla_gpu_enable_pipelined_all_reduce=true -o out.hlo
    """
    from hloopt.files import STANDARD_STREAM

    if options["output_format"] == "json" and (output is not None or place is not None):
        raise click.UsageError("--format json lists the runs: leave out -o and --place")
    runs, compiler = isolated(file, pass_name, options)
    if options["output_format"] == "json":
        print_json([{"pipeline": run.pipeline, "changed": run.is_changed} for run in runs])
        return 0
    number = number_of(runs, place, pass_name)
    run = runs[number - 1]
    write_hlo(run.after, output or STANDARD_STREAM)
    what = "changed the module" if run.is_changed else "left the module as it was"
    if compiler.plugin is None:
        say("jaxlib takes HLO as StableHLO, which simplifies tuples and drops layouts")
    say(f"{pass_name}, run {number} of {len(runs):,}, in {run.pipeline}: {what}")
    return 0


def isolated(file: str, pass_name: str, options: dict[str, Any]) -> tuple[list[Run], Compiler]:
    """The runs of a pass of the compiler that `compiler_options` name. Raises HloError and
    CompilerFailure."""
    from hloopt.compilers.compiling import Settings
    from hloopt.compilers.isolation import isolate

    program, compiler = chosen(file, options)
    settings = Settings(flags=options["flags"], seconds=options["timeout"])
    with (
        tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder,
        waiting(f"XLA runs {pass_name} on {file}"),
        repeatable(file, options),
    ):
        return isolate(program, pass_name, compiler, Path(folder), settings), compiler


def number_of(runs: list[Run], place: int | None, name: str) -> int:
    """The run to show, from 1. Raises HloError if there is none of that number."""
    from hloopt.diagnostics import HloError, counted

    if place is not None:
        if place > len(runs):
            raise HloError(f"--place {place}: {name} has {counted(len(runs), 'run')} here")
        return place
    return next((number for number, run in enumerate(runs, 1) if run.is_changed), 1)
