"""Collect HLO files with RUN lines as tests; files in a folder `inputs` only serve others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hloopt.diagnostics import HloError, render_error
from hloopt.golden import run_test, update_test


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> GoldenFile | None:
    if file_path.suffix != ".hlo" or file_path.parent.name == "inputs":
        return None
    return GoldenFile.from_parent(parent, path=file_path)


class GoldenFile(pytest.File):
    def collect(self) -> Iterator[GoldenTest]:
        yield GoldenTest.from_parent(self, name=self.path.stem)


class GoldenTestFailure(Exception):
    """A golden test failed; the message is the whole account."""


class GoldenTest(pytest.Item):
    def runtest(self) -> None:
        with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
            if self.config.getoption("update_golden"):
                update_test(self.path, Path(scratch))
            failure = run_test(self.path, Path(scratch))
        if failure:
            raise GoldenTestFailure(str(failure))

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: str | None = None,  # of pytest's own accounts; ours has one
    ) -> str:
        error = excinfo.value
        if isinstance(error, GoldenTestFailure):
            return str(error)
        if isinstance(error, HloError):
            return render_error(error)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name
