"""A pytest plugin: write which lines each passed test runs, and for how long.

    python -m pytest -p mutants_lib.recorder --record-lines FILE --record-below FOLDER …

Lines are bits of an integer, in hexadecimal; paths are relative to the working directory. What
runs when a module is imported belongs to no test.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

_NO_TEST = ""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-lines", type=Path, help="file for the lines that tests run")
    parser.addoption("--record-below", type=Path, help="folder of the sources")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("record_lines")
    config.pluginmanager.register(_Recorder(file, config.getoption("record_below")))


class _Recorder:
    """Makes each test a context of its own."""

    def __init__(self, file: Path, sources: Path) -> None:
        self._file = file
        self._coverage = coverage.Coverage(data_file=None, source=[str(sources)], config_file=False)
        self._coverage.start()
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.nodeid)
        result = yield
        self._coverage.switch_context(_NO_TEST)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds = self._seconds.get(report.nodeid, 0.0)
        self._seconds[report.nodeid] = seconds + report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        lines: dict[str, dict[str, str]] = {}
        data = self._coverage.get_data()
        for measured in sorted(data.measured_files()):
            file = Path(measured).relative_to(Path.cwd()).as_posix()
            bits: dict[str, int] = {}
            for line, tests in data.contexts_by_lineno(measured).items():
                for test in tests:
                    bits[test] = bits.get(test, 0) | 1 << line
            for test, found in bits.items():
                lines.setdefault(test, {})[file] = f"{found:x}"
        answers = {
            test: {"seconds": round(seconds, 4), "lines": lines.get(test, {})}
            for test, seconds in self._seconds.items()
            if test not in self._failed
        }
        self._file.write_text(json.dumps(answers), encoding="utf-8")
