"""The command line: names of commands, imported when they run; errors and exit codes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

import click

from hloopt import __version__
from hloopt.commands.shared.common import (
    COMPLETION_VARIABLE,
    EXIT_USAGE,
    LazyGroup,
    exit_code_of,
)
from hloopt.signals import Terminated, unwind_on_sigterm

EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

COMMANDS = {
    "analyze": "what can be known of a module without running it",
    "bisect": "the pass, and the application of it, that make a failure show",
    "cache": "where results of earlier runs are kept; remove them",
    "calibrate": "fit the figures of a target to a profile",
    "completion": "print the script by which a shell completes hloopt's command lines",
    "config": "the settings of a project, and where each is from",
    "cost": "flops, bytes, and on a target the least time",
    "diff": "compare two modules",
    "dumps": "folders that XLA dumped to: modules, passes, hosts, what was compiled again",
    "equivalent": "whether two modules compute the same",
    "expect": "whether modules are as expected: counts, memory, times",
    "explain": "what an error code means, and what to do",
    "extract": "a part of a module as a module of its own",
    "fingerprint": "a hash of what each module computes",
    "fmt": "format HLO files",
    "grep": "the instructions that a selector selects",
    "lint": "what costs time or memory, or is likely a mistake, and how much it costs",
    "memory": "how much memory a module needs, and what is alive at the peak",
    "merge": "put the parts of a run over many files together",
    "numerics": "where two modules first differ, and by how many ulps",
    "opt": "run passes on modules",
    "optimize": "decisions about collectives and memory that make a step shorter, or fit",
    "passes": "list passes, or describe one",
    "pipelines": "list pipelines, or show one",
    "reduce": "the smallest module that still shows a failure",
    "run": "run a program with NumPy, on all its devices",
    "schedule": "what is in flight when, what hides it, and what waits",
    "sharding": "where collectives come from, and how values are cut over the devices",
    "show": "an instruction, what it is computed from, and what is computed from it",
    "skeleton": "what a program does, in the order in which it runs, on one screen",
    "stats": "what modules have: collectives, products, loops, each counted once",
    "test": "run golden tests: HLO files with RUN and CHECK lines",
    "targets": "list the hardware that times and limits can be of",
    "tune": "the flags of XLA that make a step shorter, and the memory they cost",
    "verify": "check modules against the rules of HLO",
    "view": "a module as one page: graph, text, timeline, memory, cost, linked",
    "xla": "ask the real compiler: a stage of a compile, its passes, one pass alone",
}
"""Each command, which is `hloopt.commands.NAME:command`, with its line in `--help`."""
_FOLDERS = {
    **dict.fromkeys(("bisect", "extract", "reduce"), "reduction"),
    **dict.fromkeys(("cache", "dumps", "merge"), "folders"),
    **dict.fromkeys(("grep", "show", "skeleton", "view"), "inspect"),
    "tune": "xla",
}
"""The commands that are in a folder of `hloopt.commands`."""


class _OutputClosed(Exception):
    """Nobody reads what we write. Click would turn BrokenPipeError into exit code 1."""


class _Cli(LazyGroup):
    commands_of = COMMANDS
    package = "hloopt.commands"
    folders = _FOLDERS

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _OutputClosed from None
        except Terminated as signal:  # click would turn it into Abort
            raise click.exceptions.Exit(signal.exit_code) from None


def _show_version(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        click.echo(f"hloopt {__version__}")
        ctx.exit()


@click.group(cls=_Cli, context_settings={"max_content_width": 100})
@click.option(
    *("-V", "--version"),
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="show the version and exit",
)
def cli() -> None:
    """Read XLA HLO, run pass pipelines on it, and report what they did.

    Exit codes: 0 fine; 1 found something (a difference, an invalid module); 2 bad usage or bad
    input; 3 a pass failed; 70 a defect of hloopt.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: this process's) and return its exit code."""
    if arguments is None and (instruction := os.environ.get(COMPLETION_VARIABLE, "")):
        return _guarded(lambda _: _complete(instruction), arguments)
    return _guarded(partial(_run, cli, "hloopt"), arguments)


def hlo_opt(arguments: Sequence[str] | None = None) -> int:
    """Run a command line of `hlo-opt` and return its exit code."""
    from hloopt.commands.hlo_opt import command

    return _guarded(partial(_run, command, "hlo-opt"), arguments)


def _guarded(run: Callable[[Sequence[str]], int], arguments: Sequence[str] | None) -> int:
    if arguments is None:
        arguments = sys.argv[1:]
        _prepare_process()
    try:
        return run(arguments)
    except (BrokenPipeError, _OutputClosed):
        _silence_output()
        return EXIT_BROKEN_PIPE
    except Terminated as signal:
        return signal.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _complete(instruction: str) -> int:
    """Answer the script of a shell that completes a line."""
    from hloopt.commands.shared.shells import answer

    return answer(cli, instruction)


def _prepare_process() -> None:
    """Clean up on SIGTERM; closed or narrow standard streams are no reason to fail."""
    unwind_on_sigterm()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # closed with the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(command: click.Command, name: str, arguments: Sequence[str]) -> int:
    try:
        result = command.main(list(arguments), prog_name=name, standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        from hloopt.diagnostics import printable

        error.message = printable(error.message)  # type: ignore[misc]  # click only reads it
        _complain(error.show)
        return EXIT_USAGE
    except Terminated:
        raise
    except (KeyboardInterrupt, click.Abort):
        _print_error("interrupted")
        return EXIT_INTERRUPTED
    except (BrokenPipeError, _OutputClosed):
        raise
    except OSError as error:  # of files, HloError; this one is of the standard streams
        _print_error(f"error: cannot write the output: {error.strerror or error}")
        _silence_output()
        return EXIT_USAGE
    except SystemExit:
        raise
    except BaseException as error:  # packages of users may raise anything
        from hloopt.diagnostics import HloError, out_of_memory, render_error

        shown = out_of_memory() if isinstance(error, MemoryError) else error
        if not isinstance(shown, HloError):
            from hloopt.defects import as_defect

            shown = as_defect(error, arguments)
        _print_error(render_error(shown))
        return exit_code_of(shown)


def _print_error(text: str) -> None:
    _complain(lambda: print(text, file=sys.stderr))


def _complain(show: Callable[[], None]) -> None:
    """Write to stderr; if nobody can read that, the exit code still tells."""
    try:
        show()
        sys.stderr.flush()
    except OSError:
        _silence_output()


def _silence_output() -> None:
    """Keep the interpreter from writing what cannot be written once more when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
