"""Buffer assignments and schedules are those of XLA."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_agreement import Row, cpu_rows, gpu_rows, schedule_rows

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "rows", [cpu_rows, schedule_rows, gpu_rows], ids=["cpu", "schedules", "gpu"]
)
def test_recorded_answers_of_xla_are_ours(
    shared: Path, rows: Callable[[Path], Iterator[Row]]
) -> None:
    assert [str(row) for row in rows(shared / "oracle") if not row.is_met] == []
