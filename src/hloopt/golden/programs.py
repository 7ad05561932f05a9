"""The commands of golden tests, run inside this process."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from hloopt.golden.run_line import GoldenError

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


@contextmanager
def _environment() -> Iterator[None]:
    saved = dict(os.environ)
    for switch in _COLOUR_SWITCHES:
        os.environ.pop(switch, None)
    os.environ["COLUMNS"] = COLUMNS
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


def _filecheck(arguments: Sequence[str]) -> object:
    """The PyPI package `filecheck`, on an input without the test's own directives."""
    try:
        from filecheck.main import main
    except ModuleNotFoundError as error:
        raise GoldenError(
            "golden tests need the package 'filecheck'", help="pip install filecheck"
        ) from error
    options, values = split_options(arguments, ("input-file",))
    name = values[-1] if values else "-"
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        sys.stdin = _text(io.BytesIO(without_directives(text, options).encode()))
        main(["filecheck", *options])
    except (RuntimeError, OSError) as error:  # its way to report wrong flags and missing files
        print(f"filecheck: {error}", file=sys.stderr)
        return 2
    return 0


PROGRAMS: Mapping[str, Program] = {"hloopt": _hloopt, "filecheck": _filecheck}
"""The commands of RUN lines by name."""


MARKER = "// CHECK lines made by: make golden-update"
"""The line that says that a test's CHECK lines may be rewritten."""


def without_directives(text: str, arguments: Sequence[str]) -> str:
    """`text` without MARKER and the directives (RUN, CHECK…) that `filecheck ARGUMENTS` reads.

    Unchanged HLO is printed with its comments, and a directive must not match itself.
    """
    directive = directive_pattern(["RUN", *check_prefixes(arguments)])
    return "".join(
        f"{line}\n"
        for line in text.splitlines()
        if not directive.match(line) and line.strip() != MARKER
    )


def directive_pattern(prefixes: Sequence[str]) -> re.Pattern[str]:
    """Matches the beginning of a comment line that is a directive with one of `prefixes`."""
    names = "|".join(map(re.escape, prefixes))
    return re.compile(rf"\s*//+[ \t]*(?:{names})(?:-[A-Z0-9-]+)?(?:\{{LITERAL\}})?:")


def check_prefixes(arguments: Sequence[str]) -> list[str]:
    """The prefixes that `filecheck ARGUMENTS` reads: `CHECK` unless it is told."""
    _, values = split_options(arguments, ("check-prefix", "check-prefixes"))
    return [prefix for value in values for prefix in value.split(",")] or ["CHECK"]


def split_options(arguments: Sequence[str], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments without the options of these names, and the values of those options."""
    others: list[str] = []
    values: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if option.startswith("-") and option.lstrip("-") in names:
            values.append(value if equals else next(words, ""))
        else:
            others.append(word)
    return others, values
