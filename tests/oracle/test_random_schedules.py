"""Random programs, and reproducers, scheduled as XLA:GPU's compiler does."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from schedule_fuzz_lib.compiler import Compiler
from schedule_fuzz_lib.given import compare_files
from schedule_fuzz_lib.settings import SETTINGS
from schedule_fuzz_lib.subject import Programs

pytestmark = [pytest.mark.slow]


@pytest.mark.parametrize("block", range(len(SETTINGS)), ids=[s.name for s in SETTINGS])
def test_random_programs_get_the_orders_of_xla(block: int, shared: Path, compiler: Any) -> None:
    programs = Programs(0, shared, os.environ["XLA_GPU_PYTHON"], shrinking_seconds=0)
    outcomes: Counter[str] = Counter()
    for number in range(block * Programs.block, block * Programs.block + Programs.block):
        outcomes += programs.examine(number, set()).outcomes
    assert outcomes["computations"] > 0
    assert outcomes["equal"] == outcomes["computations"]


def test_reproducers_get_the_orders_of_xla(shared: Path, compiler: Any) -> None:
    files = sorted((shared / "reproducers" / "lhs").glob("*.hlo"))
    if not files:
        pytest.skip(f"no programs in {shared}/reproducers/lhs")
    lines, outcomes = compare_files(Compiler(shared, os.environ["XLA_GPU_PYTHON"]), files)
    assert lines == []
    assert 0 < outcomes["equal"] == outcomes["computations"]
