"""Commands that stand in for hloopt, so that the harness is tested on its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from hloopt.golden.programs import PROGRAMS, Program

WriteTest = Callable[[str], Path]


def show(arguments: Sequence[str]) -> None:
    """Print a file, or standard input without arguments."""
    for name in arguments:
        sys.stdout.write(Path(name).read_text(encoding="utf-8"))
    if not arguments:
        sys.stdout.write(sys.stdin.read())


def say(arguments: Sequence[str]) -> int:
    """`say CODE OUT ERR`: print to both streams, alternating, and end with CODE."""
    code, out, err = arguments
    sys.stdout.write(f"{out}\n")
    sys.stderr.write(f"{err}\n")
    sys.stdout.buffer.write(f"{out} again\n".encode())
    return int(code)


@pytest.fixture
def programs() -> Mapping[str, Program]:
    return {"show": show, "say": say, "filecheck": PROGRAMS["filecheck"]}


@pytest.fixture
def write_test(tmp_path: Path) -> WriteTest:
    def write(text: str) -> Path:
        path = tmp_path / "a test.hlo"
        path.write_text(text, encoding="utf-8")
        return path

    return write
