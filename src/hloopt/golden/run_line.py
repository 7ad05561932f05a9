"""RUN lines: the commands of a golden test, a small and portable part of what a shell reads.

A command is `[not] NAME ARGUMENT…` with the redirections `< FILE`, `> FILE`, `>> FILE`, `2> FILE`
and `2>&1` (standard error goes wherever standard output goes). `|` makes a pipeline; `&&`, `||` and
`;` join pipelines as in a shell; a `\\` at the end of a RUN line continues it in the next one.
Quoting is that of POSIX shells; there are no variables, but the `substitutions` of lit. A `*` or
`?` in a file name behind `<` stands for the one file that fits.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from hloopt.diagnostics import Source, Span
from hloopt.golden.errors import GoldenError
from hloopt.golden.substitutions import Substitutions, choose
from hloopt.patterns import pattern


@dataclass(frozen=True, slots=True)
class Command:
    """One program call; a redirection to None is none. Words still hold their substitutions."""

    words: tuple[str, ...]
    must_fail: bool = False
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    merge_stderr: bool = False
    appends: bool = False
    """Whether standard output is put behind what its file holds."""

    def substituted(self, substitutions: Substitutions) -> Command:
        """This command with paths and values in place of substitutions. Raises GoldenError."""

        def file(name: str | None) -> str | None:
            return None if name is None else substitutions.apply(name)

        return Command(
            tuple(substitutions.apply(word) for word in self.words),
            self.must_fail,
            file(self.stdin),
            file(self.stdout),
            file(self.stderr),
            self.merge_stderr,
            self.appends,
        )

    def __str__(self) -> str:
        """The command as a shell would read it, without `not`."""
        parts = [shlex.join(self.words)]
        out = ">>" if self.appends else ">"
        for operator, name in (("<", self.stdin), (out, self.stdout), ("2>", self.stderr)):
            if name is not None:
                parts.append(f"{operator} {shlex.quote(name)}")
        if self.merge_stderr:
            parts.append("2>&1")
        return " ".join(parts)


Pipeline = tuple[Command, ...]
"""Commands whose output feeds the next one."""


Joint: TypeAlias = Literal["&&", "||", ";"]


class Step(NamedTuple):
    """A pipeline, and what joins it to the one before: `;` for the first of a line."""

    joint: Joint
    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class RunLine:
    """A RUN line with its continuations: pipelines that run one after another."""

    text: str
    span: Span
    steps: tuple[Step, ...]
    """Empty where no part of an `%if` is chosen."""


def parse_run_lines(source: Source, features: Set[str] = frozenset()) -> list[RunLine]:
    """The RUN lines of a test on a machine with `features`, in order. O(length of the text).

    Raises GoldenError, pointing at the line, where there is none or one cannot be read.
    """
    found = []
    for text, span in run_texts(source):
        chosen = choose(text, features, span)
        is_left_out = bool(text) and not chosen.strip()
        found.append(RunLine(text, span, () if is_left_out else _parse_steps(chosen, span)))
    return found


def run_texts(source: Source) -> list[tuple[str, Span]]:
    """The RUN lines of a test as they are written, continuations joined. Raises GoldenError."""
    found = list(_joined_lines(source))
    if not found:
        raise GoldenError(
            "the test has no RUN line",
            span=Span(source, 0, 0),
            help="begin it with: // RUN: hloopt opt %s --passes … | filecheck %s",
        )
    return found


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
_QUOTING = pattern(r"['\"\\]")
_FIELDS = {"<": "stdin", ">": "stdout", ">>": "stdout", "2>": "stderr"}
_JOINTS: dict[str, Joint] = {"&&": "&&", "||": "||", ";": ";"}
_Token: TypeAlias = "tuple[str | None, str]"


def _parse_steps(text: str, span: Span) -> tuple[Step, ...]:
    steps: list[Step] = []
    pipeline: list[Command] = []
    joint: Joint = ";"
    tokens = _tokens(text, span)
    while True:
        command, operator = _parse_command(tokens, span)
        pipeline.append(command)
        if operator != "|":
            steps.append(Step(joint, tuple(pipeline)))
            pipeline = []
        if operator is None:
            return tuple(steps)
        joint = _JOINTS.get(operator, joint)


def _tokens(text: str, span: Span) -> Iterator[_Token]:
    """Operator or None, and word, for each token of a line."""
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise GoldenError(f"unbalanced quote in RUN line: {text[position:].strip()}", span=span)
        if match["operator"]:
            yield match["operator"], match["operator"]
        else:
            word = match["word"]
            # shlex takes quadratic time for long words.
            yield None, shlex.split(word)[0] if _QUOTING.search(word) else word
        position = match.end()


def _parse_command(tokens: Iterator[_Token], span: Span) -> tuple[Command, str | None]:
    """The next command, and the operator behind it: `|`, a joint, or None at the end."""
    words: list[str] = []
    files: dict[str, str] = {}
    merge_stderr = appends = False
    end = None
    for operator, word in tokens:
        if operator is None:
            words.append(word)
        elif operator == "2>&1":
            merge_stderr = True
        elif operator in _FIELDS:
            files[_FIELDS[operator]] = _file_name(tokens, operator, span)
            appends = appends or operator == ">>"
        elif operator == "|" or operator in _JOINTS:
            end = operator
            break
        else:
            raise GoldenError(
                f"RUN lines have no '{operator}'",
                span=span,
                help="write several RUN lines, or run the test with --shell",
            )
    must_fail = False
    while words and words[0] == "not":
        must_fail = not must_fail
        del words[0]
    if not words:
        raise GoldenError("a command is missing in the RUN line", span=span)
    command = Command(tuple(words), must_fail, merge_stderr=merge_stderr, appends=appends, **files)
    return command, end


def _file_name(tokens: Iterator[_Token], operator: str, span: Span) -> str:
    kind, word = next(tokens, ("end", ""))
    if kind is not None:
        raise GoldenError(f"'{operator}' needs a file name in the RUN line", span=span)
    return word
