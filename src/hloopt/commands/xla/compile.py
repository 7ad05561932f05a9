"""`hloopt xla compile`: a stage of a compile, or its memory and the time of its passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
    say,
    top_option,
)
from hloopt.commands.xla.inputs import program_options
from hloopt.commands.xla.options import compiled, write_hlo

_STAGES = (
    *("hlo-before", "spmd", "hlo", "buffer-assignment", "memory", "thunks"),
    *("llvm-before-optimizations", "llvm", "ptx"),
)
"""The names of `compilers.stages.STAGES`: importing those takes long for a page of help."""


@click.command(cls=HloCommand)
@program_options
@click.option(
    "--keep-schedule",
    is_flag=True,
    help="refuse a program whose schedule XLA would not keep",
)
@click.option(
    "--stage",
    type=click.Choice(_STAGES),
    help="print this instead of tables",
)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="write the stage here; a folder gets a file of each kernel",
    shell_complete=completion.files,
)
@top_option("passes, the slowest first", 10)
@format_option
@color_option
def command(file: str, stage: str | None, output: str | None, **options: Any) -> int:
    """Compile HLO or StableHLO (.mlir) with XLA for a target, without a device.

    Exit 2 if the program, a flag or the compiler is wrong or missing, 3 if XLA refuses the program,
    dies or runs out of time.

    \b
    hloopt xla compile step.hlo --target h100_sxm
    hloopt xla compile step.hlo --target b200 --stage hlo -o step.b200.hlo
    hloopt xla compile step.mlir --target cpu --stage llvm -o kernels/
    hloopt xla compile step.hlo --target h100_sxm --flag xla_gpu_enable_pipelined_all_gather=true
    """
    from hloopt.compilers.report import compile_to_json, notes, render_compile
    from hloopt.compilers.stages import STAGES, files_of

    if output is not None and stage is None:
        raise click.UsageError("-o is for a stage: give --stage, too")
    if stage is not None and options["output_format"] == "json":
        raise click.UsageError("--format json is for the tables: leave out --stage")
    asked = None if stage is None else STAGES[stage]
    stops = asked is not None and not asked.needs_code
    around = None if asked is None else asked.passes
    with compiled(file, options, until_buffers=stops, passes=around) as found:
        if stage is not None:
            _write(files_of(stage, found.dumps), output)
            for note in notes(found):
                say(note)
        elif options["output_format"] == "json":
            print_json(compile_to_json(found, options["notes"]))
        else:
            render_compile(found, make_console(options["color"]), top=options["top"])
    return 0


def _write(files: list[Path], output: str | None) -> None:
    from hloopt.files import STANDARD_STREAM, is_folder, write_whole

    if output is not None and files[0].match("*_optimizations.txt"):
        write_hlo(_text(files[0]), output)
        return
    if output is not None and (output.endswith("/") or is_folder(output)):
        for each in files:
            write_whole(f"{output.rstrip('/')}/{each.name}", _text(each))
        return
    texts = [_text(each) for each in files]
    if len(files) > 1:
        texts = [f"// {each.name}\n{text}" for each, text in zip(files, texts, strict=True)]
    write_whole(output or STANDARD_STREAM, "\n".join(texts))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
