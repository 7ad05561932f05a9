"""Buffer assignments and schedules are those of XLA."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_agreement import Row, cpu_rows, gpu_rows, schedule_rows
from memory_fuzz_lib.subject import Programs

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "rows", [cpu_rows, schedule_rows, gpu_rows], ids=["cpu", "schedules", "gpu"]
)
def test_recorded_answers_of_xla_are_ours(
    shared: Path, rows: Callable[[Path], Iterator[Row]]
) -> None:
    assert [str(row) for row in rows(shared / "oracle") if not row.is_met] == []


def test_buffers_of_random_programs_lie_where_xla_gpu_places_them(
    shared: Path, compiler: Any
) -> None:
    programs = Programs(0, shared, os.environ["XLA_GPU_PYTHON"])
    outcomes: Counter[str] = Counter()
    for number in range(Programs.block):
        outcomes += programs.examine(number, set()).outcomes
    assert outcomes["fusions of several results: programs"] > 0
    assert outcomes["programs"] == outcomes["equal"] > 0
