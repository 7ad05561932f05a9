"""Differences between the stages of real modules."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.reports.diff.steps import STAGES, TESTDATA, read

from hloopt.reports.diff.changes import Difference
from hloopt.reports.diff.comparison import diff_modules

PROGRAMS = ["branches", "fori_loop", "mlp_psum_8dev", "ring_matmul_8dev", "transformer_scan_8dev"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_differences_account_for_every_instruction(program: str) -> None:
    paths = [p for stage in STAGES for p in sorted(TESTDATA.glob(f"{program}.{stage}.hlo*"))]
    assert len(paths) >= 2
    for path in paths:
        assert diff_modules(read(path), read(path)).is_identical
    for one, other in pairwise(map(read, paths)):
        diff = diff_modules(one, other)
        totals = diff.instruction_totals()
        grown = totals[Difference.ADDED] - totals[Difference.REMOVED]
        assert grown == other.instruction_count() - one.instruction_count()
        assert sum(opcode.change for opcode in diff.opcodes) == grown
        for computation in diff.computations:
            change = len(computation.added) - len(computation.removed)
            assert change == computation.size_after - computation.size_before


def test_the_other_way_round_swaps_added_and_removed() -> None:
    one, other = (read(TESTDATA / f"mlp_psum_8dev.{stage}.hlo") for stage in STAGES[:2])
    there, back = diff_modules(one, other), diff_modules(other, one)
    assert {o.opcode: o.change for o in there.opcodes} == {
        o.opcode: -o.change for o in back.opcodes
    }
