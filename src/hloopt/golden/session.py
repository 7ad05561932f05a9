"""Golden tests one by one: what becomes of each, whatever is wrong with it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from hloopt.diagnostics import HloError, render_error
from hloopt.golden.runner import run_test
from hloopt.golden.update import update_test

Outcome: TypeAlias = Literal["passed", "updated", "failed", "error"]


class Result(NamedTuple):
    """The result of a test."""

    path: str
    outcome: Outcome
    """`error`: the test itself is wrong; `updated`: its CHECK lines were written again."""
    account: str
    """All that a person needs of one that did not pass."""
    seconds: float

    @property
    def is_bad(self) -> bool:
        return self.outcome in ("failed", "error")


def run_one(path: str) -> Result:
    """Run a test."""
    return _result(path, update=False)


def update_one(path: str) -> Result:
    """Run a test whose CHECK lines were written again, where it has the marker for that."""
    return _result(path, update=True)


def lost(path: str) -> Result:
    """The result of a test whose process was ended from outside."""
    return Result(path, "error", f"error: {path}: the process was ended from outside", 0.0)


def _result(path: str, *, update: bool) -> Result:
    begin = time.perf_counter()
    outcome, account = _outcome(Path(path), update=update)
    return Result(path, outcome, account, time.perf_counter() - begin)


def _outcome(test: Path, *, update: bool) -> tuple[Outcome, str]:
    try:
        with tempfile.TemporaryDirectory(prefix="hloopt-test-") as scratch:
            is_new = update and update_test(test, Path(scratch))
            failure = run_test(test, Path(scratch))
    except HloError as error:
        return "error", render_error(error.in_file(str(test)))
    except OSError as error:
        return "error", f"error: {test}: {error.strerror or error}"
    if failure is not None:
        return "failed", str(failure)
    return ("updated" if is_new else "passed"), ""
