"""Workers of a sweep: an input that breaks its examination is a finding, and the sweep goes on."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from sweep_lib.workers import run

# A module of its own, because workers import it, too.
SUBJECT = """
import os
from collections import Counter
from typing import NamedTuple

from sweep_lib.findings import Progress, TooSlow


class Breaking(NamedTuple):
    patience: float = 60.0

    def start(self):
        pass

    def content(self, number):
        if number == 2:
            raise KeyError("making it")
        return f"input {number}".encode()

    def examine(self, number, known):
        if number == 1:
            raise ZeroDivisionError
        if number == 3:
            raise TooSlow
        if number == 4:
            os._exit(9)
        self.content(number)
        return Progress(1, Counter(fine=1))
"""


def test_exceptions_of_an_examination_are_findings_and_the_rest_is_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "breaking_subject.py").write_text(SUBJECT)
    monkeypatch.syspath_prepend(tmp_path)
    subject = import_module("breaking_subject").Breaking()
    ((numbers, progress),) = run(subject, [range(6)], jobs=1)
    assert numbers == range(6)
    assert progress.done == 6
    assert progress.outcomes == Counter(fine=2, lost=4)
    found = {finding.number: finding for finding in progress.findings}
    assert {number: finding.problem.kind.split(" in ")[0] for number, finding in found.items()} == {
        1: "the examination: ZeroDivisionError",
        2: "the examination: KeyError",
        3: "the examination: TooSlow",
        4: "the process died (exit code 9)",
    }
    assert "ZeroDivisionError" in found[1].problem.details
    assert found[1].content == b"input 1"
    assert found[2].content == b"", "a file without what cannot be made"
