"""Steps that are decided before XLA's combiners: XLA finishes them, and the best is taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools.overlap.fake_xla import fake_xla
from tests.tools.overlap.steps import step

from overlap_lib import programs
from overlap_lib.programs import Contest, decided


@pytest.fixture(scope="module")
def layers(root: Path) -> str:
    return (root / "tests/golden/passes/overlap-search/example.hlo").read_text(encoding="utf-8")


def test_the_best_that_xla_finishes_is_taken(layers: str) -> None:
    xla = fake_xla()
    row = decided("layers", layers, xla, iterations=16, seed=0)
    assert row.ours.total < row.default.total
    assert row.ours.is_no_worse(row.default)
    assert row.decisions
    assert 0 < row.tried <= 16
    assert not row.is_undone
    assert xla.asked[:6] == [
        *("default", "pipelined", "combined by default", "combined by default"),
        *("combined 3145728", "combined 314572800"),
    ]
    assert {"finished", "forced"} <= {*xla.asked[6:]}


def test_equal_beginnings_are_one_search_and_equal_programs_are_ordered_once(layers: str) -> None:
    xla = fake_xla()
    row = decided("layers", layers, xla, iterations=1, seed=0)
    assert row.tried == 1  # not half of it
    assert xla.asked.count("finished") == 1
    assert xla.asked.count("forced") == 2  # from two beginnings


def test_orders_are_searched_until_two_are_no_worse(
    layers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_NEAR", 2.0)  # all that XLA finishes
    fine, large = fake_xla(), fake_xla(order_needs=1 << 30)
    for xla in (fine, large):
        decided("layers", layers, xla, iterations=16, seed=0)
    assert fine.asked.count("forced") == 2 * 2  # each from two beginnings
    assert large.asked.count("forced") > fine.asked.count("forced")


def test_what_xla_refuses_is_left_out(layers: str) -> None:
    row = decided("layers", layers, fake_xla(refuses=True), iterations=2, seed=0)
    assert row.ours == row.default == row.best
    assert row.decisions == 0


def test_of_a_contest_nothing_wins_that_is_worse_in_any_way() -> None:
    contest = Contest(step(1000), step(1000))
    contest.offer(step(900, allocated=1 << 30), 1)
    contest.offer(step(1100), 2)
    assert contest.best == step(1000)
    contest.offer(step(950), 3)
    contest.offer(step(970), 4)
    assert (contest.best, contest.decisions) == (step(950), 3)
