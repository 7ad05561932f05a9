"""FileCheck for HLO: the PyPI package `filecheck`, on an input without the test's own directives.

Beside the package's options there are `--implicit-check-not`, `--allow-unused-prefixes` and
`--dump-input=always`.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hloopt.golden.errors import GoldenError
from hloopt.patterns import pattern

if TYPE_CHECKING:
    from filecheck.ops import CheckOp
    from filecheck.options import Options

MARKER = "// CHECK lines made by: hloopt test --update"
"""The line that says that a test's CHECK lines may be rewritten."""
NAMES = ("filecheck", "FileCheck")
"""The names of the program in RUN lines."""

_ABOUT_ITSELF = frozenset(("--help", "--version", "-version"))
_OF_TERMINALS = ("allow-unused-prefixes", "color", "v", "vv")
_WITH_VALUES_OF_TERMINALS = ("dump-input-context", "dump-input-filter", "dump-input")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check standard input, or `--input-file`; exit code 0, 1 where it does not fit, or 2."""
    try:
        from filecheck.finput import FInput
        from filecheck.main import main as about_itself
        from filecheck.options import parse_argv_options
        from filecheck.parser import Parser
    except ModuleNotFoundError as error:
        raise GoldenError(
            "golden tests need the package 'filecheck'", help="pip install 'hloopt[golden]'"
        ) from error
    from hloopt.golden.matcher import HloMatcher

    given = _read(sys.argv[1:] if arguments is None else arguments)
    if not given.others:
        print("filecheck: no file with CHECK lines is named", file=sys.stderr)
        return 2
    if not _ABOUT_ITSELF.isdisjoint(given.others):
        about_itself(["filecheck", *given.others])
        return 0
    try:
        options: Options = parse_argv_options(["filecheck", *given.others])
        operations: Iterable[CheckOp] = Parser.from_opts(options)
        if given.forbidden:
            operations = _with_forbidden(operations, given.forbidden)
        text = sys.stdin.read() if given.input == "-" else _file(given.input)
        text = without_directives(text, given.others)
        matcher = HloMatcher(options, FInput(options.input_file, text), operations)  # type: ignore[arg-type]  # any iterator will do
        if given.shows_input:
            print(text, file=sys.stderr)
        return matcher.run()
    except (RuntimeError, OSError) as error:  # its way to report wrong flags and missing files
        print(f"filecheck: {error}", file=sys.stderr)
        return 2


class _Given(NamedTuple):
    """The arguments, those taken out that `filecheck` does not know."""

    others: list[str]
    input: str
    forbidden: list[str]
    shows_input: bool


def _read(arguments: Sequence[str]) -> _Given:
    others, inputs = split_options(arguments, ("input-file",))
    others, forbidden = split_options(others, ("implicit-check-not",))
    others, dumps = split_options(others, _WITH_VALUES_OF_TERMINALS)
    others = [each for each in others if not _is_of_terminals(each)]
    return _Given(others, inputs[-1] if inputs else "-", forbidden, "always" in dumps)


def _is_of_terminals(word: str) -> bool:
    return word.startswith("-") and word.lstrip("-").partition("=")[0] in _OF_TERMINALS


def _file(name: str) -> str:
    return Path(name).read_text(encoding="utf-8")


def _with_forbidden(operations: Iterable[CheckOp], texts: Sequence[str]) -> Iterator[CheckOp]:
    """The directives, and before each that has to match, and at the end, what must not be there."""
    for operation in operations:
        if operation.name != "NOT":
            yield from _forbidden(texts)
        yield operation
    yield from _forbidden(texts)


def _forbidden(texts: Sequence[str]) -> Iterator[CheckOp]:
    from filecheck.ops import CheckOp
    from filecheck.options import Options
    from filecheck.parser import Parser, pattern_for_opts

    parser = Parser(Options("--implicit-check-not"), io.StringIO(), *pattern_for_opts(Options("")))
    for text in texts:
        yield CheckOp("IMPLICIT-CHECK", "NOT", text, 0, parser.parse_args(text, text))


def without_directives(text: str, arguments: Sequence[str]) -> str:
    """`text` without MARKER and the directives of the test that `filecheck ARGUMENTS` reads.

    Unchanged HLO is printed with its comments, and a directive must not match itself, nor those of
    other RUN lines.
    """
    prefixes = {*check_prefixes(arguments), *_prefixes_of_test(arguments)}
    directive = directive_pattern([*_OF_TESTS, *sorted(prefixes)])
    return "".join(
        f"{line}\n"
        for line in text.splitlines()
        if not directive.match(line) and line.strip() != MARKER
    )


_OF_TESTS = ("RUN", "REQUIRES", "UNSUPPORTED", "XFAIL")
_PREFIXES = pattern(r"RUN:.*?\s--?check-prefix(?:es)?[= ][\"']?([\w,-]+)")


def _prefixes_of_test(arguments: Sequence[str]) -> list[str]:
    """The prefixes in the RUN lines of the file with the CHECK lines, as far as it can be read."""
    _, inputs = split_options(arguments, ("input-file",))
    for name in arguments:
        if not name.startswith("-") and name not in inputs and Path(name).is_file():
            text = Path(name).read_text(encoding="utf-8", errors="replace")
            return [
                "CHECK",
                *(each for found in _PREFIXES.findall(text) for each in found.split(",")),
            ]
    return []


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
