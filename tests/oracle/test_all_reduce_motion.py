"""XLA's own tests of all-reduce motion, as a table: ours does the same but where that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance_lib.records import read_table
from conformance_lib.runner import run_record
from hloopt.passes.registry import create_pass

pytestmark = [pytest.mark.slow]

DIFFERENT = {
    f"while_loop_all_reduce_code_motion_test/{name}"
    for name in ("ScatterAllReduceAccumulate", "ScatterAllReduceWithSelectAndConvert")
}
"""All devices scatter into a sum that all of them have, or nobody can say which: the all-reduce
multiplies what is there by their number in each trip. Moved, it no longer does."""


def test_all_reduces_leave_loops_as_in_the_tests_of_xla(shared: Path) -> None:
    table = shared / "conformance" / "while_loop_all_reduce_code_motion.jsonl"
    outcomes = [run_record(record, create_pass) for record in read_table(table)]
    assert {outcome.record.id for outcome in outcomes if outcome.failures} == DIFFERENT
