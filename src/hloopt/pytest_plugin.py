"""The pytest plugin: golden tests as items of pytest, and goldens of programs for tests in Python.

    pytest -p hloopt.pytest_plugin tests/golden

Files with RUN lines are collected as `hloopt test` does it; files in a folder `inputs` only serve
others. `--hloopt-update-goldens` writes CHECK lines below markers, and goldens, again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hloopt.diagnostics import HloError, render_error
from hloopt.golden.collection import is_test
from hloopt.golden.session import Update, run_one
from hloopt.golden.settings import TestSettings

if TYPE_CHECKING:
    from hloopt.testing import Program

_UPDATE = "--hloopt-update-goldens"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("hloopt", "golden tests of HLO")
    group.addoption(_UPDATE, action="store_true", help="write CHECK lines and goldens again")
    group.addoption(
        "--hloopt-shell", action="store_true", help="bash runs RUN lines, as `hloopt test --shell`"
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a file with RUN lines."""
    return _GoldenFile.from_parent(parent, path=file_path) if is_test(file_path) else None


class _GoldenFile(pytest.File):
    def collect(self) -> Iterator[_GoldenTest]:
        yield _GoldenTest.from_parent(self, name=self.path.stem)


class _Bad(Exception):
    """A golden test that does not pass; the message is its account."""


class _GoldenTest(pytest.Item):
    def runtest(self) -> None:
        settings = TestSettings(uses_shell=self.config.getoption("--hloopt-shell"))
        update: Update | None = "marked" if self.config.getoption(_UPDATE) else None
        result = run_one(str(self.path), settings, update)
        if result.is_bad:
            raise _Bad(result.account)
        if result.outcome == "unsupported":
            pytest.skip("its REQUIRES or UNSUPPORTED says so")
        if result.outcome == "xfailed":
            pytest.xfail("its XFAIL says so")

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: str | None = None,  # of pytest's own accounts; ours has one
    ) -> str:
        if isinstance(excinfo.value, _Bad):
            return str(excinfo.value)
        if isinstance(excinfo.value, HloError):
            return render_error(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class Hlo:
    """Assertions with goldens beside the test, which a switch of pytest renews."""

    def __init__(self, folder: Path, *, update: bool) -> None:
        self.folder = folder
        self.update = update

    def assert_matches_golden(self, program: Program, path: str) -> None:
        """Assert that a program is the one in a file, named relative to the test's folder."""
        from hloopt.testing import assert_matches_golden

        assert_matches_golden(program, self.folder / path, update=self.update)


@pytest.fixture
def hlo(request: pytest.FixtureRequest) -> Hlo:
    """Goldens beside the test: `hlo.assert_matches_golden(program, "goldens/step.hlo")`."""
    return Hlo(request.path.parent, update=request.config.getoption(_UPDATE))
