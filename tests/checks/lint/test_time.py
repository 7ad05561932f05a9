"""The time that all rules take together, beside that of the reports they share."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hloopt.checks.lint.run import lint
from hloopt.checks.lint.settings import LintSettings
from hloopt.checks.subject import Subject
from hloopt.checks.view import View
from hloopt.cost_models import CostModelChoice
from hloopt.files import load


@pytest.mark.slow
def test_rules_take_little_more_than_memory_and_schedule(shared: Path) -> None:
    path = max((shared / "corpus" / "benchmarks").glob("*1x8.hlo"), key=lambda p: p.stat().st_size)

    def seconds(examine: Callable[[View], object]) -> float:
        times = []
        for _ in range(2):
            begin = time.process_time()
            choice = CostModelChoice(target="h100_sxm")
            examine(View.of(Subject(str(path), load(str(path)), choice)))
            times.append(time.process_time() - begin)
        return min(times)

    alone = seconds(lambda view: view.subject.memory) + seconds(lambda view: view.schedule)
    assert seconds(lambda view: lint(view, LintSettings())) <= 1.2 * alone
