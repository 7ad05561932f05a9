"""`hloopt xla isolate`: one of XLA's passes on a module."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import Function, HloCommand, format_option, print_json, say
from hloopt.commands.xla.inputs import program_options
from hloopt.commands.xla.options import chosen, repeatable, waiting, write_hlo
from hloopt.commands.xla.repro import compiler_words, shell_line, with_command

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
@click.option(
    "--repro",
    metavar="FILE",
    help="write the module before the pass here, with the command that repeats this in a comment; "
    "a folder/ gets PASS.hlo",
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
    hloopt xla isolate step.hlo --target h100_sxm --pass cse --repro cse.hlo
    hloopt xla isolate step.hlo --target h100_sxm --pass collective-pipeliner-forward \\
        --flag xla_gpu_enable_pipelined_all_reduce=true -o out.hlo
    """
    from hloopt.compilers.flags import with_large_constants
    from hloopt.files import STANDARD_STREAM

    others = output, place, options["repro"]
    if options["output_format"] == "json" and any(other is not None for other in others):
        raise click.UsageError("--format json lists the runs: leave out -o, --place and --repro")
    repro = options.pop("repro")
    if repro is not None:
        options["flags"] = with_large_constants(options["flags"])
    found = isolated(file, pass_name, options)
    runs = found.runs
    if options["output_format"] == "json":
        print_json([{"pipeline": run.pipeline, "changed": run.is_changed} for run in runs])
        return 0
    number = number_of(runs, place, pass_name)
    run = runs[number - 1]
    if repro is not None:
        _write_repro(repro, found, pass_name, number, options)
    if output is not None or repro is None:
        write_hlo(run.after, output or STANDARD_STREAM)
    what = "changed the module" if run.is_changed else "left the module as it was"
    if found.compiler.plugin is None:
        say("jaxlib takes HLO as StableHLO, which simplifies tuples and drops layouts")
    say(f"{pass_name}, run {number} of {len(runs):,}, in {run.pipeline}: {what}")
    return 0


class Isolated(NamedTuple):
    """The runs of a pass, and how they were made."""

    runs: list[Run]
    compiler: Compiler
    flags: str
    """Of XLA, as its variable of the environment has them."""


def isolated(file: str, pass_name: str, options: dict[str, Any]) -> Isolated:
    """The runs of a pass of the compiler that `compiler_options` name. Raises HloError and
    CompilerFailure."""
    from hloopt.compilers.compiling import FLAGS, Settings
    from hloopt.compilers.isolation import isolate

    program, compiler = chosen(file, options)
    settings = Settings(flags=options["flags"], seconds=options["timeout"])
    with (
        tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder,
        waiting(f"XLA runs {pass_name} on {file}"),
        repeatable(file, options),
    ):
        runs = isolate(program, pass_name, compiler, Path(folder), settings)
        flags = (Path(folder) / "alone" / FLAGS).read_text(encoding="utf-8")
    return Isolated(runs, compiler, flags)


def _write_repro(
    repro: str, found: Isolated, pass_name: str, number: int, options: dict[str, Any]
) -> None:
    """The module before the first run of the pass: it runs at its places up to this one again."""
    from hloopt.compilers.plugins import version_of
    from hloopt.files import file_name, is_folder, write_whole

    path = repro
    if repro.endswith("/") or is_folder(repro):
        path = f"{repro.rstrip('/')}/{file_name(pass_name, '.hlo')}"
    words = ["hloopt", "xla", "isolate", "%s", "--pass", pass_name, "--place", str(number)]
    commands = [[*words, *compiler_words(options)]]
    version = version_of(found.compiler.plugin)
    write_whole(path, with_command(found.runs[0].before, path, commands, version, found.flags))
    say(f"to repeat it: {shell_line(path, commands)}")


def number_of(runs: list[Run], place: int | None, name: str) -> int:
    """The run to show, from 1. Raises HloError if there is none of that number."""
    from hloopt.diagnostics import HloError, counted

    if place is not None:
        if place > len(runs):
            raise HloError(f"--place {place}: {name} has {counted(len(runs), 'run')} here")
        return place
    return next((number for number, run in enumerate(runs, 1) if run.is_changed), 1)
