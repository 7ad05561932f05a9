"""Make the CHECK lines of golden tests from what their commands print today.

Unless all are asked for, only tests with the marker line are touched: their CHECK lines go away and
new ones follow the marker, one for each line of output. Review the difference as you would review
code. Where the output names lines of the test, put the marker at its end, so that new CHECK lines
move nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hloopt.golden.errors import GoldenError
from hloopt.golden.filecheck import (
    MARKER,
    check_prefixes,
    directive_pattern,
    split_options,
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
    below the RUN lines, or at the end where the output names lines of the test. Raises GoldenError
    where the test cannot be run, where a command in front of filecheck ends unexpectedly (no
    expectation is made of a failure nobody asked for), and where one prefix would stand for two
    outputs.
    """
    # CHECK lines of today do not decide which commands run.
    programs = {**programs, **dict.fromkeys(FILECHECK, _accept)}
    is_changed = False
    for _ in range(2):  # the output may name lines that the first time moves
        source = read_test(test)
        if MARKER not in source.text.splitlines() and not without_marker:
            break
        blocks: dict[str, list[str]] = {}
        for run_line in parse_run_lines(source, settings.features):
            for outcomes in run_pipelines(run_line, test, scratch, programs, settings):
                _add_block(blocks, run_line, outcomes, (test, scratch), settings)
        text = _with_blocks(source.text.splitlines(), blocks)
        if text == source.text:
            break
        test.write_text(text, encoding="utf-8", newline="\n")
        is_changed = True
    return is_changed


def _with_blocks(lines: list[str], blocks: Mapping[str, list[str]]) -> str:
    """The text of a test with other CHECK lines behind its marker."""
    directive = directive_pattern(list(blocks) or ["CHECK"])
    kept = [line for line in lines if not directive.match(line)]
    new = [line for block in blocks.values() for line in block]
    if MARKER not in kept and new:
        last = max(number for number, line in enumerate(kept) if has_run_line(line))
        kept.insert(len(kept) if any("{{.*}}" in line for line in new) else last + 1, MARKER)
    if new:
        position = kept.index(MARKER) + 1
        kept[position:position] = new
    return "".join(f"{line}\n" for line in kept)


def _accept(arguments: Sequence[str]) -> None:
    """Stand in for filecheck."""


def _add_block(
    blocks: dict[str, list[str]],
    run_line: RunLine,
    outcomes: tuple[Outcome, ...],
    paths: Iterable[Path],
    settings: TestSettings,
) -> None:
    *before, last = outcomes
    if not all(outcome.is_expected for outcome in before):
        raise GoldenError(str(Failure(run_line, tuple(before), settings)), span=run_line.span)
    arguments = last.command.words[1:]
    if last.command.words[0] not in FILECHECK:
        return
    checked = _checked_by(last, run_line)
    if not checked:
        raise GoldenError(
            "filecheck reads nothing, so there is no output to make CHECK lines from",
            span=run_line.span,
        )
    prefixes = check_prefixes(arguments)
    if len(prefixes) > 1:
        raise GoldenError(
            f"a RUN line with the prefixes {', '.join(prefixes)} cannot be updated",
            span=run_line.span,
            help="give it one --check-prefix",
        )
    output = without_directives(checked, arguments).splitlines()
    block = list(check_lines(prefixes[0], output, paths))
    if blocks.setdefault(prefixes[0], block) != block:
        raise GoldenError(
            f"two RUN lines with the prefix {prefixes[0]} have different output",
            span=run_line.span,
            help="give each its own --check-prefix",
        )


def _checked_by(filecheck: Outcome, run_line: RunLine) -> str:
    """The text that a run of filecheck reads: from a pipe, or a file. Raises GoldenError."""
    _, files = split_options(filecheck.command.words[1:], ("input-file",))
    if not files or files[-1] == "-":
        return filecheck.stdin.decode()
    try:
        return Path(files[-1]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise GoldenError(f"{files[-1]}: {reason}", span=run_line.span) from None


_COMPUTATION = pattern(r"(?:ENTRY )?%?[\w.-]+ (?:\(.*\) -> .+ )?\{$")


def check_lines(prefix: str, output: Iterable[str], paths: Iterable[Path] = ()) -> Iterator[str]:
    """The directives that hold for `output`: LABEL for computations, NEXT for lines that follow.

    Any of `paths`, or its folder with what is in it, becomes `{{.*}}` and the rest of it.
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
    whole = [re.escape(str(path)) for path in paths]
    folders = [re.escape(f"{path.parent}{os.sep}") for path in paths if path.parent.name]
    # Not within a word or a longer path: a folder may be called `t`.
    pieces = [line]
    if whole:
        pieces = re.split(rf"(?<![\w./-])(?:{'|'.join([*whole, *folders])})", line)
    if len(pieces) > 1:
        return ": " + "{{.*}}".join(map(_escape, pieces))
    special = "{{" in line or "[[" in line
    return f"{'{LITERAL}' if special else ''}: {line}"


def _escape(text: str) -> str:
    return text.replace("{{", "{{[{][{]}}").replace("[[", r"{{\[\[}}")
