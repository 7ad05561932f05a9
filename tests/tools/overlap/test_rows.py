"""Rows of the tables of overlap: cells, means, and the file that keeps them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.tools.overlap.steps import row, step

from hloopt.text import parse_module
from overlap_lib.record import Record
from overlap_lib.rows import allowed_iterations, cells, summary, table
from overlap_lib.steps import PAGE, Step

SHORTER = row("a", step(2000, 500), step(1000, 50), step(1600))
SAME = row("b", step(1000, 200), step(1000, 200))
BUSY = row("busy", step(1000, 19), step(500, 0))


def test_a_row() -> None:
    assert cells(SHORTER) == (
        *("a", "2.00 → 1.00", "0.500", "1.60", "0.625", "0.50 → 0.05", "2.00 → 1.00"),
        *("1.0 → 1.0", "2", "7", "1.5"),
    )
    assert [line.count("|") for line in table([SHORTER, SAME])] == [12] * 4


def test_means_are_of_steps_that_wait_and_ratios_have_a_floor() -> None:
    shorter, exposed, undone, out = summary([SHORTER, SAME, BUSY])
    assert shorter == (
        "Steps are 29.3% shorter than with default flags (0.0% to 50.0% without one of them), "
        "20.9% than with the best (0.0% to 37.5% without one of them), in the geometric mean of "
        "2 steps."
    )
    assert exposed == (
        "Exposed time is 64.3% lower in the sum and 68.4% in the geometric mean of the ratios, "
        "each taken as 0.1 at least."
    )
    assert undone.endswith("longer or larger: none.")
    assert out == "Left out, as less than 2% is waiting: busy."


def test_of_one_step_there_is_no_range() -> None:
    assert summary([SHORTER])[0] == (
        "Steps are 50.0% shorter than with default flags, 37.5% than with the best, in the "
        "geometric mean of 1 step."
    )
    assert summary([BUSY])[0].startswith("Undone")


def test_results_that_were_undone_are_named() -> None:
    assert "Undone, as XLA finds them longer or larger: b." in summary(
        [SHORTER, replace(SAME, is_undone=True)]
    )


@pytest.mark.parametrize(
    ("other", "is_no_worse"),
    [
        (step(1000.005), True),
        (step(1000.1), False),
        (step(900, allocated=PAGE), True),
        (step(900, allocated=PAGE + 1), False),
        (replace(step(900), smooth=1001.0), False),
    ],
)
def test_a_step_is_no_worse_by_both_models_and_in_pages(other: Step, is_no_worse: bool) -> None:
    assert other.is_no_worse(step(1000)) == is_no_worse


def test_large_programs_are_tried_less_often() -> None:
    module = parse_module("HloModule m\n\nENTRY e { ROOT p = f32[] parameter(0) }\n")
    assert allowed_iterations(module, 200) == 200
    assert allowed_iterations(module, 3_000_000) == 2_000_000


def test_rows_are_kept_by_settings_and_table(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "rows.jsonl"
    record = Record(path, "200 iterations")
    assert record.known("steps", "a") is None
    record.add("steps", SHORTER)
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"key": "200 iterations", "table": "steps", "row": {"na')
    again = Record(path, "200 iterations")
    assert again.known("steps", "a") == SHORTER
    assert again.known("programs", "a") is None
    assert Record(path, "100 iterations").known("steps", "a") is None
