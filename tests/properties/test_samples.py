"""The samples that tests take of what is large, and the record of those that took all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import conftest
from tests.conftest import Sample

from sweep_lib.state import sources_digest


def test_a_seed_decides_what_is_in_a_sample(capsys: pytest.CaptureFixture[str]) -> None:
    things = list(range(1_000))
    first, again, other = (Sample(seed).of(things, 20) for seed in (0, 0, 1))
    assert len(set(first)) == 20
    assert first == again != other
    assert capsys.readouterr().out.splitlines()[::2] == [
        "20 of 1,000, seed 0",
        "20 of 1,000, seed 1",
    ]


def test_the_whole_is_all_there_is() -> None:
    things = list(range(50))
    assert sorted(Sample(is_whole=True).of(things, 20)) == things
    assert sorted(Sample().of(things, 70)) == things


def test_what_passed_is_done_until_the_sources_change(tmp_path: Path) -> None:
    record = tmp_path / "folder" / "whole.txt"
    passed = pytest.TestReport("a.py::a", ("", None, ""), {}, "passed", None, "call")
    failed = pytest.TestReport("a.py::b", ("", None, ""), {}, "failed", None, "call")
    for report in (passed, failed):
        conftest._Record(record).pytest_runtest_logreport(report)
    assert conftest._done(record) == {"a.py::a"}
    record.write_text(record.read_text().replace(sources_digest(), "0"))
    assert conftest._done(record) == set()
