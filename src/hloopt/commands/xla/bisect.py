"""`hloopt xla bisect`: the first of XLA's passes after which a module computes something else."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    EXIT_USAGE,
    HloCommand,
    format_option,
    print_json,
    say,
    seeds_option,
)
from hloopt.commands.shared.running import preserves_option
from hloopt.commands.xla.inputs import program_options
from hloopt.commands.xla.options import chosen, repeatable, waiting
from hloopt.commands.xla.repro import compiler_words, shell_line, with_command

if TYPE_CHECKING:
    from hloopt.compilers.bisection import Bisected


@click.command(cls=HloCommand)
@program_options
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    help="write the modules before and after the pass here, before.hlo with the command",
    shell_complete=completion.folders,
)
@seeds_option
@preserves_option("precision")
@format_option
def command(file: str, output: str | None, **options: Any) -> int:
    """Find the first of XLA's passes after which a module computes something else.

    The program is compiled once; what each pass left is run by the interpreter on the same inputs
    as what was there before the first. If the last stage is different, the search halves the chain:
    it takes a difference to persist. The pass that is found is then run alone on the module before
    it. Stages that cannot be judged are named. Exit 1 if a pass is found, 0 if all stages that can
    be judged are equal, 2 if none can.

    \b
    hloopt xla bisect step.hlo --target h100_sxm
    hloopt xla bisect step.hlo --target cpu -o bug/
    hloopt xla bisect --from-dump /tmp/dump --module jit_step
    """
    from hloopt.compilers.bisection import Verdict
    from hloopt.compilers.bisection_report import bisected_to_json, lines_of
    from hloopt.diagnostics import printable

    bisected = _bisected(file, options)
    found = bisected.found
    commands = _commands(bisected, options)
    shown_by = None
    if found.verdict is Verdict.DIFFERENT:
        before = "before.hlo" if output is None else f"{output.rstrip('/')}/before.hlo"
        after = before.replace("before.hlo", "after.hlo")
        if output is not None:
            _write(bisected, before, after, commands)
        shown_by = shell_line(before, commands).replace("%after", after)
    if options["output_format"] == "json":
        print_json(bisected_to_json(bisected, shown_by if output is not None else None))
    else:
        for line in lines_of(bisected):
            click.echo(printable(line))
        if shown_by is not None and output is not None:
            say(f"to see it: {shown_by}")
        elif shown_by is not None:
            say("-o DIR/ writes the modules before and after, with a command that shows it")
    return {Verdict.DIFFERENT: EXIT_FOUND, Verdict.EQUAL: 0, Verdict.UNKNOWN: EXIT_USAGE}[
        found.verdict
    ]


def _bisected(file: str, options: dict[str, Any]) -> Bisected:
    from hloopt.compilers.bisection import Compared, bisect
    from hloopt.compilers.compiling import Settings

    program, compiler = chosen(file, options)
    settings = Settings(flags=options["flags"], seconds=options["timeout"])
    how = Compared(options["seeds"], options["preserves"], options["timeout"])
    with (
        tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder,
        waiting(f"XLA compiles {file} for {compiler.target}, and stages are compared"),
        repeatable(file, options),
    ):
        return bisect(program, compiler, Path(folder), settings, how)


def _commands(bisected: Bisected, options: dict[str, Any]) -> list[list[str]]:
    """The command lines that show the difference: the pass alone and a comparison if that does,
    else a comparison of the two modules."""
    from hloopt.compilers.bisection import Verdict
    from hloopt.compilers.flags import with_large_constants

    options = {**options, "flags": with_large_constants(options["flags"])}
    alone, name = bisected.alone, bisected.name
    how = ["--preserves", options["preserves"], "--seeds", str(options["seeds"])]
    if alone is None or name is None or alone.verdict is not Verdict.DIFFERENT:
        return [["hloopt", "equivalent", "%s", "%after", *how]]
    isolating = ["hloopt", "xla", "isolate", "%s", "--pass", name, "--place", str(alone.place)]
    return [
        [*isolating, *compiler_words(options), "-o", "%t"],
        ["hloopt", "equivalent", "%s", "%t", *how],
    ]


def _write(bisected: Bisected, before: str, after: str, commands: list[list[str]]) -> None:
    from hloopt.files import write_whole

    assert bisected.texts is not None  # the difference was found
    named = [[after if word == "%after" else word for word in words] for words in commands]
    text = with_command(bisected.texts[0], before, named, bisected.version, bisected.flags)
    write_whole(after, bisected.texts[1])
    write_whole(before, text)
