"""Steps for tests of tools/overlap_table.py."""

from __future__ import annotations

from overlap_lib.rows import Row
from overlap_lib.steps import Step


def step(total: float, exposed: float = 0.0, allocated: int = 1 << 20) -> Step:
    """A step that both models find equally long, in microseconds."""
    return Step(total, exposed, total, allocated)


def row(name: str, default: Step, ours: Step, best: Step | None = None) -> Row:
    return Row(name, default, best or default, ours, decisions=2, tried=7, seconds=1.5)
