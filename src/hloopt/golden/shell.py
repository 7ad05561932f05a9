"""RUN lines that bash runs, for tests with more than the harness reads: `xargs`, `sort`, globs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import which

from hloopt.golden.errors import GoldenError
from hloopt.golden.programs import plain_environment

_MODULES = {
    "hloopt": "hloopt",
    "hlo-opt": "hloopt.hlo_opt",
    "filecheck": "hloopt.golden",
    "FileCheck": "hloopt.golden",
}
_NOT = """#!/bin/sh
if "$@"; then exit 1; fi
if [ $? -gt 128 ]; then exit 1; fi
exit 0
"""
"""A program that ends by a signal crashed, which nobody asked for."""


def run_in_shell(command: str, scratch: Path) -> tuple[int, bytes]:
    """The exit code of a command line, and its output. Raises GoldenError without bash.

    A pipeline fails where one of its commands does. Takes the start of a process for each command.
    """
    bash = which("bash")
    if bash is None:
        raise GoldenError("--shell needs bash, which is not in PATH", help="leave --shell out")
    environment = {**plain_environment(), "PYTHONPATH": _python_path()}
    environment["PATH"] = os.pathsep.join((str(_programs(scratch)), environment.get("PATH", "")))
    done = subprocess.run(
        [bash, "-o", "pipefail", "-c", command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout


def _python_path() -> str:
    """The modules of this process, for those that it starts."""
    package = Path(__file__).parents[2]
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join((str(package), given)) if given else str(package)


def _programs(scratch: Path) -> Path:
    """A folder with the commands of RUN lines, which run with this Python."""
    folder = scratch / "bin"
    if not folder.exists():
        folder.mkdir()
        python = shlex.quote(sys.executable)
        texts = {
            name: f'#!/bin/sh\nexec {python} -m {module} "$@"\n'
            for name, module in _MODULES.items()
        }
        for name, text in {**texts, "not": _NOT}.items():
            path = folder / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
    return folder
