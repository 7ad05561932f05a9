"""Searched schedules beside those that XLA:GPU made of its own programs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from hloopt.scheduling.search_options import SearchOptions
from schedule_lib.search import search_recorded

pytestmark = [pytest.mark.slow]

_LARGE = 60_000
"""Bytes of a packed module; larger ones take minutes."""


@pytest.mark.parametrize("objective", ["exposed", "makespan"])
def test_a_short_search_is_no_worse_than_xla(
    shared: Path, objective: Literal["exposed", "makespan"]
) -> None:
    search = SearchOptions(iterations=6000, objective=objective)
    sweeps = [
        sweep
        for sweep in sorted((shared / "oracle" / "gpu").glob("*/sweep"))
        if (sweep / "before_lhs.hlo.gz").stat().st_size < _LARGE
    ]
    results = {sweep.parent.name: search_recorded(sweep, search) for sweep in sweeps}
    assert results
    assert [name for name, result in results.items() if not result.is_no_worse] == []
    # Of what XLA's schedules wait for collectives, so few steps save a part somewhere.
    assert objective != "exposed" or min(result.ratio for result in results.values()) < 1
