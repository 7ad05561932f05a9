"""tools/schedule_gap.py: what the solver's orders are held to. Skipped without OR-Tools."""

from __future__ import annotations

import pytest

from schedule_lib.gap import gap_of

pytest.importorskip("ortools", reason="needs the extra solver")


def test_an_order_that_needs_more_memory_in_what_it_calls_does_not_count() -> None:
    gap = gap_of(1, 183, iterations=20_000, seconds=20.0)
    assert gap is not None
    assert gap.proved <= gap.solved <= gap.searched
