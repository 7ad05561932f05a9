"""A command of the user's as the predicate."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from typing import ClassVar

from hloopt.reduction.outcomes import NOT_SHOWN, Outcome, Verdict, unknown

FILE = "{}"
"""Where the name of the file goes in a command."""
CANNOT_TELL = 125
"""The exit code of a command that cannot tell, as in `git bisect run`."""
_NOT_FOUND = (126, 127)


@dataclass(frozen=True)
class CommandShows:
    """A command, run by `sh`, ends with exit code 0; or its output has a match of `grep`.

    `{}` in the command is the file; without one the file comes last.
    """

    test: str
    name: str
    """The file is called so, in a folder of its own: some commands look at the ending."""
    grep: str | None = None
    needs_valid: ClassVar[bool] = True
    starts_processes: ClassVar[bool] = True

    def narrowed(self, text: str, outcome: Outcome) -> CommandShows:
        """The same."""
        return self

    def __call__(self, text: str, steps: int | None = None) -> Outcome:
        """Run the command on a module. All that it started ends with it."""
        with tempfile.TemporaryDirectory(prefix="hloopt-reduce-") as folder:
            path = os.path.join(folder, self.name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            code, output = _run(self.command(path))
        if code in (CANNOT_TELL, *_NOT_FOUND):
            return unknown(f"exit code {code}: {_last_line(output)}".rstrip(": "))
        if self.grep is None:
            return Outcome(Verdict.SHOWN, detail="exit code 0") if code == 0 else NOT_SHOWN
        found = re.search(self.grep, output, re.MULTILINE)
        return Outcome(Verdict.SHOWN, detail=found[0]) if found else NOT_SHOWN

    def describe(self) -> str:
        """For a message."""
        if self.grep is not None:
            return f"the output of `{self.test}` has a match of '{self.grep}'"
        return f"`{self.test}` ends with exit code 0"

    def command(self, path: str) -> str:
        """The command with the file in its place."""
        quoted = shlex.quote(path)
        return self.test.replace(FILE, quoted) if FILE in self.test else f"{self.test} {quoted}"


def _run(command: str) -> tuple[int, str]:
    """The exit code of a command, and its output, both streams in one."""
    process = subprocess.Popen(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate()
        return process.returncode, output.decode("utf-8", "replace")
    finally:  # also where a signal ends this process: nothing is left running
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it left in the background, too
        process.wait()


def _last_line(output: str) -> str:
    return (output.strip().rpartition("\n")[2])[:_LONGEST]


_LONGEST = 200
