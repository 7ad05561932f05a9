"""A sample of the planted failures is reduced and bisected as all of them are for the bar."""

from __future__ import annotations

import pytest

from failures_lib.cases import FAILURES
from planted_reductions import measure

_SAMPLE = (
    "the root of a call in the memory of an input",
    "a loop in a loop that both send on",
    "a trip less",
)
"""Small inputs, with aliases, loops, calls and collectives; `make planted-reductions` takes all."""


@pytest.mark.slow
@pytest.mark.parametrize("name", _SAMPLE)
def test_a_failure_is_reduced_and_bisected(name: str) -> None:
    (case,) = (c for c in FAILURES if c.name == name)
    result = measure(case, case.text(), jobs=1, bisects=True)
    assert result.is_right, result
