"""The commands of golden tests, run inside this process."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module

Program = Callable[[Sequence[str]], object]
"""Takes the arguments behind its name, uses `sys.stdin`, `sys.stdout` and `sys.stderr`, and ends
like a console script: returns an exit code (None is 0) or raises SystemExit."""


def run_program(
    program: Program, arguments: Sequence[str], stdin: bytes, *, merge_stderr: bool = False
) -> tuple[int, bytes, bytes]:
    """Exit code, standard output and standard error; with `merge_stderr` the last one is empty.

    Replaces the standard streams of the process meanwhile, so only one thread may do this. An
    exception of the program other than SystemExit goes through.
    """
    stdout = io.BytesIO()
    stderr = stdout if merge_stderr else io.BytesIO()
    with _streams(stdin, stdout, stderr), _environment():
        code = _exit_code(program, arguments)
    return code, stdout.getvalue(), b"" if merge_stderr else stderr.getvalue()


def _exit_code(program: Program, arguments: Sequence[str]) -> int:
    try:
        result = program(arguments)
    except SystemExit as end:
        result = end.code
    if isinstance(result, str):
        print(result, file=sys.stderr)
        return 1
    return result if isinstance(result, int) else 0


@contextmanager
def _streams(stdin: bytes, stdout: io.BytesIO, stderr: io.BytesIO) -> Iterator[None]:
    saved = sys.stdin, sys.stdout, sys.stderr
    out = _text(stdout)
    # One object where the streams are one, so that they keep each other's order.
    err = out if stderr is stdout else _text(stderr)
    sys.stdin, sys.stdout, sys.stderr = _text(io.BytesIO(stdin)), out, err
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved
        for stream in {id(out): out, id(err): err}.values():
            stream.detach()  # else the memory is closed with its wrapper


def _text(stream: io.BytesIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding="utf-8", newline="\n", write_through=True)


COLUMNS = "120"
"""Width of what commands print: a test does not depend on the terminal it is run from."""
_COLOUR_SWITCHES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")


def plain_environment() -> dict[str, str]:
    """The environment of this process, with a fixed width and no wish for colour."""
    kept = {name: value for name, value in os.environ.items() if name not in _COLOUR_SWITCHES}
    return {**kept, "COLUMNS": COLUMNS}


@contextmanager
def _environment() -> Iterator[None]:
    saved = dict(os.environ)
    plain = plain_environment()
    os.environ.clear()
    os.environ.update(plain)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


def _hloopt(arguments: Sequence[str]) -> object:
    run: Callable[[list[str]], object] = import_module(_CLI).main
    return run(list(arguments))


_CLI = "hloopt.cli"
"""The module of the command line, which has a command that runs golden tests: so by its name."""


def _hlo_opt(arguments: Sequence[str]) -> object:
    run: Callable[[list[str]], object] = import_module(_CLI).hlo_opt
    return run(list(arguments))


def _filecheck(arguments: Sequence[str]) -> object:
    from hloopt.golden.filecheck import main

    return main(arguments)


def _echo(arguments: Sequence[str]) -> None:
    words = list(arguments)
    end = "\n"
    if words[:1] == ["-n"]:
        end = ""
        del words[0]
    print(*words, end=end)


PROGRAMS: Mapping[str, Program] = {
    "hloopt": _hloopt,
    "hlo-opt": _hlo_opt,
    "filecheck": _filecheck,
    "FileCheck": _filecheck,
    "echo": _echo,
}
"""The commands of RUN lines by name."""
