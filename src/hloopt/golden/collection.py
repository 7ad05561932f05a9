"""Golden tests in files and folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hloopt.diagnostics import did_you_mean
from hloopt.golden.errors import GoldenError
from hloopt.golden.run_line import has_run_line

SUFFIXES = (".hlo", ".hlotest", ".txt", ".mlir")
"""The suffixes of files in folders that are tests if they have a RUN line."""
INPUTS = "inputs"
"""Folders of this name hold files that other tests read."""


def find_tests(paths: Iterable[str]) -> list[Path]:
    """The tests among files and in folders, each once, those of a folder by name.

    A file that is named is a test whatever its suffix. Raises GoldenError for a path that is not
    there.
    """
    found: dict[Path, None] = {}
    for given in paths:
        path = Path(given)
        if path.is_dir():
            found.update(dict.fromkeys(_tests_in(path)))
        elif path.is_file():
            found[path] = None
        else:
            near = did_you_mean(path.name, _names_beside(path))
            raise GoldenError(f"{given}: no such file or folder", help=near, code="HLO001")
    return list(found)


def _tests_in(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f != INPUTS and not f.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if is_test(path):
                yield path


def is_test(path: Path) -> bool:
    """Whether a file that nobody names is a test: by its suffix, its folder and a RUN line."""
    if not path.name.endswith(SUFFIXES) or path.parent.name == INPUTS:
        return False
    try:
        return has_run_line(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False


def _names_beside(path: Path) -> list[str]:
    try:
        return os.listdir(path.parent)
    except OSError:
        return []
