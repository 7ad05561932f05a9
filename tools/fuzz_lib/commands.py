"""Random command lines on any input: they end with an answer or a message, never with a defect."""

from __future__ import annotations

import contextlib
import io
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from unittest import mock

import click

from hloopt import cli
from hloopt.diagnostics import HloError
from hloopt.files.reading import load
from hloopt.text.print_options import print_options
from sweep_lib.findings import Problem, TooSlow
from sweep_lib.prints import Broken, first_line

EXIT_CODES = (0, 1, 2, 3)
SECONDS = 20
_LEFT_OUT = (
    *("engine", "jobs", "executor", "repro", "help", "color", "validate", "split_input_file"),
    *("watch", "clear", "exact"),
)
"""Options that start processes or XLA, read other files, run as long as they take or for ever, or
empty the cache of the user."""
_WITH_XLA = frozenset(("xla", "tune", "what-if"))
"""Commands that do nothing without XLA."""
_ALWAYS = {
    "run": ["--max-steps", "20000", "--max-memory", "50MB"],
    "equivalent": ["--max-steps", "20000", "--max-memory", "50MB", "--seeds", "1"],
    "numerics": ["--max-steps", "20000", "--max-memory", "50MB", "--seeds", "1"],
    "opt": ["--repro-dir", "FOLDER"],
    "optimize": ["--iterations", "2", "-o", "FOLDER/best.hlo"],
}
_VALUES = {
    "pipeline": ("simplify", "overlap", "flatten", "schedule-gpu", "async-gpu", "nothing"),
    "passes": ("dce,cse", "fixpoint(tuple-simplifier,dce)", "call-inliner{", "algsimp"),
    "print_option": ("keep_text=false", "keep_order=true", "x=1"),
    "remarks": ("applied", "missed:dce", "applied,missed", "x"),
    "devices": ("1x1", "2x1", "1x4", "0x1", "x"),
    "limit": ("80GiB", "1KB", "0", "-1"),
    "target": ("h100_sxm", "tpu_v5e", "cpu", "nothing"),
    "xla_flag": ("xla_gpu_enable_nccl_user_buffers", "x"),
    "scheduler": ("all_gather_overlap_limit=2", "x=1"),
    "explain": ("%root", "%p0", "x"),
    "ignore": ("names", "metadata", "layouts,metadata", "x"),
    "with_": ("names",),
    "supported_unbounded_dynamic_ops": ("add", "all", "x"),
    "print_values": ("root", "%p0", "x"),
}
_OUTPUTS = ("output", "html", "trace", "dump_dir", "dot", "model_explorer", "perfetto")


def leaf_commands() -> dict[tuple[str, ...], click.Command]:
    """All commands by the words that call them, groups left out."""
    found: dict[tuple[str, ...], click.Command] = {}
    waiting: list[tuple[tuple[str, ...], click.Command]] = [((), cli.cli)]
    for words, command in waiting:  # grows
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                waiting.append(((*words, name), inner))
        else:
            found[words] = command
    return found


def drawn_commands() -> dict[tuple[str, ...], click.Command]:
    """The commands that are tried."""
    return {words: each for words, each in leaf_commands().items() if _WITH_XLA.isdisjoint(words)}


def command_line(dice: random.Random, files: Sequence[str], folder: str) -> list[str]:
    """A command with files to read and random options; what it writes is in `folder`."""
    commands = drawn_commands()
    words = dice.choice([*commands, ("opt",), ("opt",), ("run",), ("equivalent",), ("numerics",)])
    arguments = [*words, *(a.replace("FOLDER", folder) for a in _ALWAYS.get(words[-1], ()))]
    share = dice.choice((0.0, 0.1, 0.25))
    for parameter in commands[words].params:
        if isinstance(parameter, click.Argument):
            arguments += _of_argument(dice, parameter, files)
        elif (
            isinstance(parameter, click.Option)
            and parameter.name not in _LEFT_OUT
            and dice.random() < share
        ):
            arguments += _of_option(dice, parameter, folder)
    return arguments


def _of_argument(dice: random.Random, parameter: click.Argument, files: Sequence[str]) -> list[str]:
    kind = (parameter.metavar or parameter.name or "").upper()
    if re.search("NAME|CODE", kind) and "FILE" not in kind:
        return dice.choice(([], ["dce"], ["simplify"], ["HLO204"], ["x"]))
    if kind == "SELECTOR":
        return [dice.choice(("bytes>0", "%p0", "all-gather|copy, in-loop", "(", "x=1"))]
    count = 1 if parameter.nargs == -1 else parameter.nargs
    return [dice.choice(files) for _ in range(count)]


def _of_option(dice: random.Random, option: click.Option, folder: str) -> list[str]:
    flag = dice.choice([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return [flag]
    name, kind = option.name or "", option.type
    if name in _OUTPUTS:
        return [flag, f"{folder}/{name}.{dice.choice(('hlo', 'html', 'json', 'npz'))}"]
    if isinstance(kind, click.Choice):
        return [flag, dice.choice(list(map(str, kind.choices)))]
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        return [flag, dice.choice(("0", "1", "2", "3", "7"))]
    values = _VALUES.get(name)
    return [flag, dice.choice(values)] if values else []


def check_command(arguments: Sequence[str], *, apart: bool = False) -> tuple[str, Problem | None]:
    """How a command line ended ("exit N"), and the problem if it must not.

    In this process, or with `apart` in one of its own, as users start it.
    """
    step = " ".join(word for word in arguments[:2] if not word.startswith(("-", "/")))
    try:
        code = _apart(arguments) if apart else _here(arguments)
        if code not in EXIT_CODES:
            raise Broken(f"exit code {code}", " ".join(arguments))
        if code == 0:
            _check_written(arguments)
    except Broken as error:
        return "broken", Problem(f"{step}: {error.args[0]}", "\n".join(error.args))
    except subprocess.TimeoutExpired as error:
        return "broken", Problem(f"{step}: hangs", str(error))
    except (Exception, TooSlow) as error:
        return "broken", Problem.of(step, error)
    return f"exit {code}", None


def _here(arguments: Sequence[str]) -> int:
    with _silence(), mock.patch("hloopt.defects.as_defect", _raise):
        return cli.main(list(arguments))


def _raise(error: Exception, arguments: Sequence[str]) -> Exception:
    raise error


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        yield


def _apart(arguments: Sequence[str]) -> int:
    result = subprocess.run(
        [sys.executable, "-m", "hloopt", *arguments],
        capture_output=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    if b"Traceback (most recent call last)" in result.stderr:
        raise Broken("a traceback", result.stderr.decode(errors="replace")[-3000:])
    return result.returncode


def _check_written(arguments: Sequence[str]) -> None:
    """Read again what opt and fmt wrote, unless the style of it is not meant to be read."""
    if arguments[0] not in ("opt", "fmt") or "--no-verify" in arguments:
        return
    given = list(pairwise(arguments))
    styles = [value for flag, value in given if flag == "--print"]
    changes = [value for flag, value in given if flag == "--print-option"]
    if print_options(styles[-1] if styles else "formatted", changes).unreadable():
        return
    for flag, path in given:
        if flag in ("-o", "--output") and path.endswith(".hlo") and Path(path).is_file():
            try:
                load(path, verify=arguments[0] == "opt")
            except HloError as error:
                raise Broken("what it wrote is refused", first_line(error)) from error
