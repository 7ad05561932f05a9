"""Options that name a compiler of XLA, and a compile by them."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared.common import Function, say
from hloopt.commands.shared.compiler_options import flag_option, plugin_option, target_option

if TYPE_CHECKING:
    from hloopt.compilers.compiling import Compiled, Compiler
    from hloopt.compilers.failures import CompilerFailure
    from hloopt.compilers.programs import Program

_SECONDS = 600.0
_TARGET = "cpu, a GPU (`hloopt targets`), a file of ours, or XLA's description *.txtpb"


def compiler_options(*, needs_target: bool = True) -> Callable[[Function], Function]:
    """`--target`, `--devices`, `--flag`, `--plugin`, `--timeout`; see `compiled`."""

    def declare(command: Function) -> Function:
        for option in reversed(
            (
                target_option(_TARGET, required=needs_target),
                click.option(
                    "--devices",
                    type=click.IntRange(1),
                    metavar="N",
                    help="devices to compile for; default: what the program says",
                ),
                flag_option("a flag of XLA; XLA_FLAGS of the environment is not read"),
                plugin_option("the compiler for GPUs: cuda13, cuda12, rocm7, or a PJRT library"),
                click.option(
                    "--timeout",
                    type=click.FloatRange(0, min_open=True),
                    default=_SECONDS,
                    show_default=True,
                    metavar="SECONDS",
                    help="end a compile after so long; isolate and compare make two, bisect three",
                ),
            )
        ):
            command = option(command)
        return command

    return declare


@contextmanager
def repeatable(path: str, options: dict[str, Any]) -> Iterator[None]:
    """Let a failure of the compiler say how to see it again, and how to make it small."""
    from hloopt.compilers.failures import CompilerFailure

    try:
        yield
    except CompilerFailure as failure:
        failure.help = "; ".join(_next_steps(failure, path, options))
        raise


def _next_steps(failure: CompilerFailure, path: str, options: dict[str, Any]) -> Iterator[str]:
    from hloopt.compilers.failures import CompilerKilled, CompilerTooSlow

    is_late = isinstance(failure, CompilerTooSlow)
    if failure.help is not None:
        yield failure.help
        if not isinstance(failure, CompilerTooSlow | CompilerKilled):
            return
    target, devices = options["target"], options["devices"]
    more = [word for flag in options["flags"] for word in ("--flag", flag)]
    if is_written("plugin"):
        more += ["--plugin", options["plugin"]]
    if not is_late:
        count = [] if devices is None else ["--devices", str(devices)]
        words = ["hloopt", "xla", "compile", path, "--target", target, *more, *count]
        yield f"`{shlex.join(words)}` repeats it"
    if isinstance(failure, CompilerKilled) or devices is not None or not _is_hlo_file(path):
        return
    hangs = ["--hangs", f"{options['timeout']:g}s"] if is_late else []
    words = ["hloopt", "reduce", path, "--xla-crashes", target, *hangs, *more]
    shows = "takes as long" if is_late else "fails in the same way"
    yield f"`{shlex.join(words)}` makes the smallest program that {shows}"


def _is_hlo_file(path: str) -> bool:
    from hloopt.files import STANDARD_STREAM

    return path != STANDARD_STREAM and not path.endswith((".mlir", ".mlirbc"))


def is_written(option: str) -> bool:
    """Whether the command line has an option, which else a variable of the environment may have."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


def chosen(path: str, options: dict[str, Any]) -> tuple[Program, Compiler]:
    """The program in a file, and the compiler that the options name. Raises HloError."""
    from hloopt.compilers.compiling import Compiler, check_flags
    from hloopt.compilers.programs import Program
    from hloopt.diagnostics import HloError, counted

    check_flags(options["flags"])
    if options["target"] == "cpu" and is_written("plugin"):
        raise click.UsageError("--plugin is a compiler for GPUs: --target cpu takes that of jaxlib")
    keeps_schedule = options.get("keep_schedule", False)
    if keeps_schedule and options["target"] == "cpu":
        raise click.UsageError(
            "--keep-schedule: jaxlib drops schedules, a plug-in for GPUs does not"
        )
    compiler = Compiler.named(options["target"], options["plugin"])
    program = Program.read(path, options["devices"])
    if program.elided:
        what = counted(program.elided, "constant has", "constants have")
        say(f"{path}: {what} no values in the text (--xla_dump_large_constants): zeros stand in")
    if keeps_schedule and not program.is_scheduled:
        raise HloError(f"{path} has no schedule to keep", help="hlo-memory-scheduler makes one")
    if compiler.plugin is None and program.is_scheduled:
        say(f"{path}: jaxlib drops the schedule on the way, a plug-in for GPUs keeps it")
    return program, compiler


@contextmanager
def compiled(path: str, options: dict[str, Any], **settings: Any) -> Iterator[Compiled]:
    """The remains of a compile of the program in a file, as long as the block runs.

    `settings` are further ones of `compiling.Settings`. Raises HloError and CompilerFailure.
    """
    from hloopt.compilers.compiling import Settings, compile_program

    program, compiler = chosen(path, options)
    wanted = Settings(flags=options["flags"], seconds=options["timeout"], **settings)
    with tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder:
        with waiting(f"XLA compiles {path} for {compiler.target}"), repeatable(path, options):
            found = compile_program(program, compiler, Path(folder), wanted)
        yield found


def write_hlo(text: str, output: str) -> None:
    """Write a text of XLA, or where the name wants that its proto."""
    from hloopt.diagnostics import Source
    from hloopt.files import has_proto_suffix, has_proto_text_suffix, save, write_whole
    from hloopt.text import parse_module

    if has_proto_suffix(output) or has_proto_text_suffix(output):
        save(parse_module(Source(output, text)), output)
    else:
        write_whole(output, text)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A line on stderr meanwhile, on a terminal."""
    import sys

    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(f"{what} …")):
        yield
