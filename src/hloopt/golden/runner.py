"""Run a golden test and say what went wrong."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hloopt.diagnostics import Source, counted
from hloopt.golden.errors import GoldenError
from hloopt.golden.filecheck import NAMES as FILECHECK
from hloopt.golden.filecheck import check_prefixes, without_directives
from hloopt.golden.programs import PROGRAMS, Program, run_program
from hloopt.golden.run_line import Command, Pipeline, RunLine, parse_run_lines, run_texts
from hloopt.golden.settings import TestSettings
from hloopt.golden.substitutions import Substitutions, choose

HERE = TestSettings()
"""The settings of a run without any options."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a command. `stdin` is what it could read, not what it did read."""

    command: Command
    code: int
    stdin: bytes
    stdout: bytes
    stderr: bytes

    @property
    def is_expected(self) -> bool:
        """Whether the command ended as its RUN line wants it to."""
        return (self.code != 0) == self.command.must_fail


@dataclass(frozen=True, slots=True)
class Failure:
    """A RUN line whose outcome is not the expected one."""

    run_line: RunLine
    outcomes: tuple[Outcome, ...]
    settings: TestSettings = HERE

    def __str__(self) -> str:
        """All a person needs: the RUN line, what its commands said, how to repeat it."""
        line, _ = self.run_line.span.location
        test = _shown(Path(self.run_line.span.source.name))
        parts = [f"{test}:{line}: RUN: {self.run_line.text}"]
        for outcome in self.outcomes:
            parts += _account(outcome)
        parts.append(f"repeat: {_repeat(self.run_line, test, self.settings)}")
        return "\n".join(parts)


def run_test(
    test: Path,
    scratch: Path,
    programs: Mapping[str, Program] = PROGRAMS,
    settings: TestSettings = HERE,
) -> Failure | None:
    """Run the RUN lines of `test` until one fails; None when all of them pass.

    `%t` is a file in `scratch`, which must exist. Raises GoldenError where the test cannot be run;
    an exception that a command does not turn into an exit code is a defect of it and goes through.
    """
    source = read_test(test)
    if settings.uses_shell:
        return _run_in_shell(source, test, scratch, settings)
    for run_line in parse_run_lines(source, settings.features):
        ran = list(run_pipelines(run_line, test, scratch, programs, settings))
        # As in a shell the last one decides; there is none where an %if leaves nothing.
        if ran and not all(outcome.is_expected for outcome in ran[-1]):
            return Failure(run_line, ran[-1], settings)
    return None


def _run_in_shell(
    source: Source, test: Path, scratch: Path, settings: TestSettings
) -> Failure | None:
    from hloopt.golden.shell import run_in_shell

    substitutions = _substitutions(test, scratch, settings)
    for text, span in run_texts(source):
        try:
            command = substitutions.apply(choose(text, settings.features, span))
        except GoldenError as error:
            raise error.at(span) from None
        code, output = run_in_shell(command, scratch)
        if code:
            shown = Command(("bash", "-c", command), merge_stderr=True)
            return Failure(RunLine(text, span, ()), (Outcome(shown, code, b"", output, b""),))
    return None


def _substitutions(test: Path, scratch: Path, settings: TestSettings) -> Substitutions:
    return Substitutions(test, scratch / f"{test.name}.tmp", settings.parameters)


def read_test(test: Path) -> Source:
    """The text of a test file; raises GoldenError where it is not UTF-8."""
    try:
        return Source(str(test), test.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise GoldenError(f"{test} is not UTF-8 text: {error}") from error


def run_pipelines(
    run_line: RunLine,
    test: Path,
    scratch: Path,
    programs: Mapping[str, Program] = PROGRAMS,
    settings: TestSettings = HERE,
) -> Iterator[tuple[Outcome, ...]]:
    """The outcomes of the pipelines of a RUN line that run, each run when it is asked for."""
    substitutions = _substitutions(test, scratch, settings)
    succeeded = True
    for step in run_line.steps:
        if step.joint != ";" and succeeded is not (step.joint == "&&"):
            continue
        outcomes: list[Outcome] = []
        data = b""
        for template in step.pipeline:
            try:
                command = template.substituted(substitutions)
            except GoldenError as error:
                raise error.at(run_line.span) from None
            outcome = _run_command(command, data, run_line, programs)
            outcomes.append(outcome)
            data = outcome.stdout if outcome.command.stdout is None else b""
        succeeded = all(outcome.is_expected for outcome in outcomes)
        yield tuple(outcomes)


def _run_command(
    command: Command, data: bytes, run_line: RunLine, programs: Mapping[str, Program]
) -> Outcome:
    name = command.words[0]
    if name not in programs:
        known = ", ".join(("not", *programs))
        raise GoldenError(
            f"unknown command '{name}' in RUN line",
            span=run_line.span,
            help=f"known: {known}; with --shell bash runs RUN lines, which knows all commands",
        )
    try:
        if command.stdin is not None:
            data = _only_file(command.stdin).read_bytes()
        code, stdout, stderr = run_program(
            programs[name], command.words[1:], data, merge_stderr=command.merge_stderr
        )
        if command.stdout is not None:
            with open(command.stdout, "ab" if command.appends else "wb") as file:
                file.write(stdout)
        if command.stderr is not None:
            Path(command.stderr).write_bytes(stderr)
    except OSError as error:
        raise GoldenError(f"{error.filename}: {error.strerror}", span=run_line.span) from error
    return Outcome(command, code, data, stdout, stderr)


def _only_file(name: str) -> Path:
    """The file of a name, or the only one that fits a pattern. Raises OSError."""
    path = Path(name)
    if not path.exists() and any(each in path.name for each in "*?["):
        found = sorted(path.parent.glob(path.name))
        if len(found) == 1:
            return found[0]
    return path


_SHOWN_LINES = 60  # of a command's messages, and of what filecheck read


def _account(outcome: Outcome) -> list[str]:
    name = outcome.command.words[0]
    messages = _beginning(outcome.stderr)
    if outcome.is_expected:
        return [f"--- {name} on stderr:", messages] if messages else []
    wanted = ", and 'not' wants it to fail" if outcome.command.must_fail else ""
    parts = [f"--- {name} ended with exit code {outcome.code}{wanted}", messages]
    if outcome.command.merge_stderr:
        parts.append(_beginning(outcome.stdout))
    if name in FILECHECK and outcome.stdin:
        text = without_directives(outcome.stdin.decode(errors="replace"), outcome.command.words)
        parts += ["--- filecheck read:", _beginning(text.encode())]
    return [part for part in parts if part]


def _beginning(output: bytes) -> str:
    lines = output.decode(errors="replace").rstrip().splitlines()
    if len(lines) > _SHOWN_LINES:
        lines[_SHOWN_LINES:] = [f"… {counted(len(lines) - _SHOWN_LINES, 'more line')}"]
    return "\n".join(lines)


def _repeat(run_line: RunLine, test: Path, settings: TestSettings) -> str:
    """The RUN line with file names in place of `%s` and the like, for a shell."""
    if not run_line.steps:  # a shell ran it
        return f"hloopt test --shell {shlex.quote(str(test))}"
    substitutions = _substitutions(test, Path(tempfile.gettempdir()), settings)
    parts: list[str] = []
    for step in run_line.steps:
        parts += [step.joint] if parts else []
        parts.append(" | ".join(_for_shell(step.pipeline, substitutions)))
    return " ".join(parts)


def _for_shell(pipeline: Pipeline, substitutions: Substitutions) -> Iterator[str]:
    for position, command in enumerate(pipeline):
        if position and command.words[0] in FILECHECK:
            directives = "|".join(("RUN", *check_prefixes(command.words)))
            yield f"grep -vE '^ *// *({directives})'"
        yield str(command.substituted(substitutions))


def _shown(path: Path) -> Path:
    """`path` relative to the working directory where it is below it."""
    working = Path.cwd()
    return path.relative_to(working) if path.is_relative_to(working) else path
