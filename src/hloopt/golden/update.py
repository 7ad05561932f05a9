"""Make the CHECK lines of golden tests from what their commands print today.

Unless all are asked for, only tests with the marker line are touched: their CHECK lines go away and
new ones follow the marker, one for each line of output. Review the difference as you would review
code. Where the output names lines of the test, put the marker at its end, so that new CHECK lines
move nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hloopt.golden.errors import GoldenError
from hloopt.golden.filecheck import (
    MARKER,
    check_prefixes,
    directive_pattern,
    without_directives,
)
from hloopt.golden.filecheck import NAMES as FILECHECK
from hloopt.golden.programs import PROGRAMS, Program
from hloopt.golden.run_line import RunLine, has_run_line, parse_run_lines
from hloopt.golden.runner import HERE, Failure, Outcome, read_test, run_pipelines
from hloopt.golden.settings import TestSettings
from hloopt.patterns import pattern


def update_test(
    test: Path,
    scratch: Path,
    programs: Mapping[str, Program] = PROGRAMS,
    settings: TestSettings = HERE,
    *,
    without_marker: bool = False,
) -> bool:
    """Rewrite the CHECK lines of `test`; whether that changed the file.

    Without the marker line the file stays as it is, unless `without_marker`: then the marker is put
    below the RUN lines. Raises GoldenError where the test cannot be run, where a command in front
    of filecheck ends unexpectedly (no expectation is made of a failure nobody asked for), and where
    one prefix would stand for two outputs.
    """
    source = read_test(test)
    lines = source.text.splitlines()
    if MARKER not in lines and not without_marker:
        return False
    # CHECK lines of today do not decide which commands run.
    programs = {**programs, **dict.fromkeys(FILECHECK, _accept)}
    blocks: dict[str, list[str]] = {}
    for run_line in parse_run_lines(source, settings.features):
        for outcomes in run_pipelines(run_line, test, scratch, programs, settings):
            _add_block(blocks, run_line, outcomes, (test, scratch, test.parent))
    directive = directive_pattern(list(blocks) or ["CHECK"])
    kept = [line for line in lines if not directive.match(line)]
    if MARKER not in kept:
        if not blocks:
            return False  # nothing goes into filecheck
        last = max(n for n, line in enumerate(kept) if has_run_line(line))
        kept.insert(last + 1, MARKER)
    position = kept.index(MARKER) + 1
    kept[position:position] = [line for block in blocks.values() for line in block]
    text = "".join(f"{line}\n" for line in kept)
    if text == source.text:
        return False
    test.write_text(text, encoding="utf-8", newline="\n")
    return True


def _accept(arguments: Sequence[str]) -> None:
    """Stand in for filecheck."""


def _add_block(
    blocks: dict[str, list[str]],
    run_line: RunLine,
    outcomes: tuple[Outcome, ...],
    paths: Iterable[Path],
) -> None:
    *before, last = outcomes
    if not all(outcome.is_expected for outcome in before):
        raise GoldenError(str(Failure(run_line, tuple(before))), span=run_line.span)
    arguments = last.command.words[1:]
    if last.command.words[0] not in FILECHECK:
        return
    if not last.stdin:
        raise GoldenError(
            "nothing is piped into filecheck, so there is no output to make CHECK lines from",
            span=run_line.span,
        )
    prefixes = check_prefixes(arguments)
    if len(prefixes) > 1:
        raise GoldenError(
            f"a RUN line with the prefixes {', '.join(prefixes)} cannot be updated",
            span=run_line.span,
            help="give it one --check-prefix",
        )
    output = without_directives(last.stdin.decode(), arguments).splitlines()
    block = list(check_lines(prefixes[0], output, paths))
    if blocks.setdefault(prefixes[0], block) != block:
        raise GoldenError(
            f"two RUN lines with the prefix {prefixes[0]} have different output",
            span=run_line.span,
            help="give each its own --check-prefix",
        )


_COMPUTATION = pattern(r"(?:ENTRY )?%?[\w.-]+ (?:\(.*\) -> .+ )?\{$")


def check_lines(prefix: str, output: Iterable[str], paths: Iterable[Path] = ()) -> Iterator[str]:
    """The directives that hold for `output`: LABEL for computations, NEXT for lines that follow.

    Any of `paths` in a line becomes `{{.*}}`.
    """
    follows = False
    for line in output:
        if not line.strip():
            follows = False
            continue
        suffix = "-LABEL" if _COMPUTATION.match(line) else "-NEXT" if follows else ""
        yield f"// {prefix}{suffix}{_pattern(line, paths)}"
        follows = True


def _pattern(line: str, paths: Iterable[Path]) -> str:
    """The end of a directive, from its colon, that matches `line`."""
    path = "|".join(re.escape(str(path)) for path in paths)
    pieces = re.split(path, line) if path else [line]
    if len(pieces) > 1:
        return ": " + "{{.*}}".join(map(_escape, pieces))
    special = "{{" in line or "[[" in line
    return f"{'{LITERAL}' if special else ''}: {line}"


def _escape(text: str) -> str:
    return text.replace("{{", "{{[{][{]}}").replace("[[", r"{{\[\[}}")
