"""Passes of which there are no recorded pairs, beside XLA:GPU's, on programs made for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pass_answers_lib.subject import CHANGED, EQUAL, EXPLAINED, GENERATED, Programs
from sweep_lib.findings import Progress

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

_COUNT = 40


@pytest.mark.parametrize("name", GENERATED)
def test_whole_graphs_are_those_of_xla(name: str, compiler: Any, shared: Path) -> None:
    programs = Programs(7, shared, os.environ["XLA_GPU_PYTHON"], pass_name=name)
    total = Progress()
    for number in range(_COUNT):
        total.add(programs.examine(number, set()))
    assert [found.problem for found in total.findings] == []
    assert total.outcomes[EQUAL] + total.outcomes[EXPLAINED] == _COUNT
    assert total.outcomes[EQUAL] >= 0.9 * _COUNT  # of few programs, a few more may have a cause
    assert total.outcomes[CHANGED] >= 6
