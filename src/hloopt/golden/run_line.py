"""RUN lines: the commands of a golden test, a small and portable part of what a shell reads.

A command is `[not] NAME ARGUMENT…` with the redirections `< FILE`, `> FILE`, `2> FILE` and `2>&1`
(standard error goes wherever standard output goes). `|` makes a pipeline, `&&` joins pipelines, a
`\\` at the end of a RUN line continues it in the next one. Quoting is that of POSIX shells; there
are no variables, globs or substitutions but these:

| written | means |
| --- | --- |
| `%s` | the test file |
| `%S` | its folder |
| `%t` | the name of a temporary file of this test |
| `%%` | `%` |
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hloopt.diagnostics import HloError, Source, Span
from hloopt.patterns import pattern


class GoldenError(HloError):
    """A golden test that cannot be run: no RUN line, or one we cannot read."""


@dataclass(frozen=True, slots=True)
class Substitutions:
    """The values of `%s`, `%S` and `%t`."""

    test: Path
    temporary: Path

    def apply(self, word: str) -> str:
        """`word` with every substitution replaced, whatever spaces the paths hold."""
        values = {
            "s": str(self.test),
            "S": str(self.test.parent),
            "t": str(self.temporary),
            "%": "%",
        }
        return re.sub("%([sSt%])", lambda match: values[match[1]], word)


@dataclass(frozen=True, slots=True)
class Command:
    """One program call; a redirection to None is none. Words still hold their substitutions."""

    words: tuple[str, ...]
    must_fail: bool = False
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    merge_stderr: bool = False

    def substituted(self, substitutions: Substitutions) -> Command:
        """This command with paths in place of `%s`, `%S` and `%t`."""

        def file(name: str | None) -> str | None:
            return None if name is None else substitutions.apply(name)

        return Command(
            tuple(substitutions.apply(word) for word in self.words),
            self.must_fail,
            file(self.stdin),
            file(self.stdout),
            file(self.stderr),
            self.merge_stderr,
        )

    def __str__(self) -> str:
        """The command as a shell would read it, without `not`."""
        parts = [shlex.join(self.words)]
        for operator, name in (("<", self.stdin), (">", self.stdout), ("2>", self.stderr)):
            if name is not None:
                parts.append(f"{operator} {shlex.quote(name)}")
        if self.merge_stderr:
            parts.append("2>&1")
        return " ".join(parts)


Pipeline = tuple[Command, ...]
"""Commands whose output feeds the next one."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """A RUN line with its continuations: pipelines that run one after another."""

    text: str
    span: Span
    pipelines: tuple[Pipeline, ...]


def parse_run_lines(source: Source) -> list[RunLine]:
    """The RUN lines of a test, in order. O(length of the text).

    Raises GoldenError, pointing at the line, where there is none or one cannot be read.
    """
    run_lines = [_parse_run_line(text, span) for text, span in _joined_lines(source)]
    if not run_lines:
        raise GoldenError(
            "the test has no RUN line",
            span=Span(source, 0, 0),
            help="begin it with: // RUN: hloopt opt %s --passes … | filecheck %s",
        )
    return run_lines


_RUN = pattern(r"^[ \t]*//[ \t]*RUN:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)


def has_run_line(text: str) -> bool:
    """Whether a text has a RUN line, so that it is a test. O(length of the text)."""
    return "RUN:" in text and _RUN.search(text) is not None


def _joined_lines(source: Source) -> Iterator[tuple[str, Span]]:
    parts: list[str] = []
    start = 0
    for match in _RUN.finditer(source.text):
        if not parts:
            start = match.start(1)
        text = match[1]
        parts.append(text.removesuffix("\\").rstrip())
        if not text.endswith("\\"):
            yield " ".join(parts), Span(source, start, match.end(1))
            parts = []
    if parts:
        raise GoldenError(
            "the last RUN line ends in '\\', and no RUN line follows",
            span=Span(source, start, start),
        )


_TOKEN = pattern(
    r"""[ \t]*(?:
        (?P<operator> 2>&1 | 2> | && | \|\| | >> | [|<>;&] )
      | (?P<word> (?: '[^']*' | "(?:\\.|[^"\\])*" | \\. | [^\s'"\\|<>;&] )+ )
    )""",
    re.VERBOSE,
)
_FIELDS = {"<": "stdin", ">": "stdout", "2>": "stderr"}


def _parse_run_line(text: str, span: Span) -> RunLine:
    pipelines: list[Pipeline] = []
    pipeline: list[Command] = []
    tokens = _tokens(text, span)
    while True:
        command, operator = _parse_command(tokens, span)
        pipeline.append(command)
        if operator != "|":
            pipelines.append(tuple(pipeline))
            pipeline = []
        if operator is None:
            return RunLine(text, span, tuple(pipelines))


def _tokens(text: str, span: Span) -> Iterator[tuple[str | None, str]]:
    """Operator or None, and word, for each token; then a last (None, "") for the end."""
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise GoldenError(f"unbalanced quote in RUN line: {text[position:].strip()}", span=span)
        if match["operator"]:
            yield match["operator"], match["operator"]
        else:
            yield None, shlex.split(match["word"])[0]
        position = match.end()


def _parse_command(
    tokens: Iterator[tuple[str | None, str]], span: Span
) -> tuple[Command, str | None]:
    """The next command, and the operator behind it: `|`, `&&`, or None at the end of the line."""
    words: list[str] = []
    files: dict[str, str] = {}
    merge_stderr = False
    end = None
    for operator, word in tokens:
        if operator is None:
            words.append(word)
        elif operator == "2>&1":
            merge_stderr = True
        elif operator in _FIELDS:
            files[_FIELDS[operator]] = _file_name(tokens, operator, span)
        elif operator in ("|", "&&"):
            end = operator
            break
        else:
            raise GoldenError(
                f"RUN lines have no '{operator}'", span=span, help="write several RUN lines"
            )
    must_fail = bool(words) and words[0] == "not"
    if must_fail:
        del words[0]
    if not words:
        raise GoldenError("a command is missing in the RUN line", span=span)
    command = Command(tuple(words), must_fail, merge_stderr=merge_stderr, **files)
    return command, end


def _file_name(tokens: Iterator[tuple[str | None, str]], operator: str, span: Span) -> str:
    kind, word = next(tokens, ("end", ""))
    if kind is not None:
        raise GoldenError(f"'{operator}' needs a file name in the RUN line", span=span)
    return word
