"""Golden tests one by one: what becomes of each, whatever is wrong with it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from hloopt.diagnostics import HloError, render_error
from hloopt.golden.directives import expected
from hloopt.golden.runner import read_test, run_test
from hloopt.golden.settings import TestSettings
from hloopt.golden.update import update_test

Outcome: TypeAlias = Literal[
    "passed", "updated", "unsupported", "xfailed", "xpassed", "failed", "error"
]
Update: TypeAlias = Literal["marked", "all"]


class Result(NamedTuple):
    """The result of a test."""

    path: str
    outcome: Outcome
    """`error`: the test itself is wrong; `updated`: its CHECK lines were written again;
    `unsupported`: not for this machine; `xfailed`, `xpassed`: expected to fail, and did or not."""
    account: str
    """All that a person needs of one that did not pass."""
    seconds: float

    @property
    def is_bad(self) -> bool:
        return self.outcome in ("failed", "xpassed", "error")


def run_one(path: str, settings: TestSettings, update: Update | None = None) -> Result:
    """Run a test, its CHECK lines written again first if that is wanted."""
    begin = time.perf_counter()
    outcome, account = _outcome(Path(path), settings, update)
    return Result(path, outcome, account, time.perf_counter() - begin)


def lost(path: str) -> Result:
    """The result of a test whose process was ended from outside."""
    return Result(path, "error", f"error: {path}: the process was ended from outside", 0.0)


def _outcome(test: Path, settings: TestSettings, update: Update | None) -> tuple[Outcome, str]:
    is_new = False
    try:
        plan = expected(read_test(test), settings.features)
        if plan.unsupported is not None:
            return "unsupported", ""
        with tempfile.TemporaryDirectory(prefix="hloopt-test-") as scratch:
            if update is not None and not plan.fails:
                every = update == "all"
                is_new = update_test(test, Path(scratch), settings=settings, without_marker=every)
            failure = run_test(test, Path(scratch), settings=settings)
    except HloError as error:
        return "error", render_error(error.in_file(str(test)))
    except OSError as error:
        return "error", f"error: {test}: {error.strerror or error}"
    if plan.fails:
        if failure is None:
            return "xpassed", f"{test}: XFAIL, and it passes: remove the line"
        return "xfailed", ""
    if failure is not None:
        return "failed", str(failure)
    return ("updated" if is_new else "passed"), ""
