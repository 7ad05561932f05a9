"""Passes of which there are few recorded pairs, beside XLA's, on programs made for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pass_answers_lib.generated import GENERATED
from pass_answers_lib.subject import CHANGED, DIED, EQUAL, EXPLAINED, Programs
from sweep_lib.findings import Progress

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

_COUNT = 40
_LEAST_EQUAL = {
    "bitcast_dtypes_expander": 0.05,
    **dict.fromkeys(("gather_simplifier", "scatter_simplifier", "topk-decomposer"), 0.6),
    **dict.fromkeys(
        ("associative-scan-rewriter", "operand_upcaster", "while-loop-invariant-code-motion"), 0.8
    ),
}
"""The share of equal results where more of them have a cause than of other passes, which have to
reach 0.9."""


# The script that asks XLA:CPU leaves the pipes of a process open that XLA ended.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", GENERATED)
def test_whole_graphs_are_those_of_xla(name: str, compiler: Any, shared: Path) -> None:
    programs = Programs(7, shared, os.environ["XLA_GPU_PYTHON"], pass_name=name)
    total = Progress()
    for number in range(_COUNT):
        total.add(programs.examine(number, set()))
    assert [found.problem for found in total.findings] == []
    assert sum(total.outcomes[each] for each in (EQUAL, EXPLAINED, DIED)) == _COUNT
    assert total.outcomes[EQUAL] >= _LEAST_EQUAL.get(name, 0.9) * _COUNT
    assert total.outcomes[CHANGED] >= 3
