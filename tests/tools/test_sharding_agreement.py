"""`tools/sharding_agreement.py`: the bars of `hloopt sharding explain`, and its speed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import pair

import sharding_agreement
from hloopt.text import parse_module
from sharding_agreement import Pair, chain, judged, timed


def test_known_origins_are_right() -> None:
    before, after = pair("gathered")
    counts = judged(Pair("gathered", before, after, {"all-gather": "d"}))
    assert counts == {"all": 1, "right": 1, "clear wrong": 0}


def test_a_wrong_origin_that_is_called_clear_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = pair("gathered")
    counts = judged(Pair("gathered", before, after, {"all-gather": "w"}), is_listed=True)
    assert counts == {"all": 1, "right": 0, "clear wrong": 1}
    assert "gathered: %all-gather is of %w, not d" in capsys.readouterr().out


def test_texts_that_do_not_belong_together_count_as_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before, _ = pair("gathered")
    assert judged(Pair("g", before, before, {"all-gather": "d"})) == {"all": 1}
    assert "do not belong together" in capsys.readouterr().err


def test_the_chain_is_made_by_products() -> None:
    left, right = map(parse_module, chain(3))
    truth = {f"g{n}": f"d{n}" for n in range(3)}
    assert judged(Pair("chain", left, right, truth))["right"] == 3


def test_ten_thousand_instructions_take_less_than_three_seconds() -> None:
    times, counts = zip(*(timed() for _ in range(3)), strict=True)
    assert min(counts) >= 10_000
    assert min(times) < 3


def test_a_folder_that_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sharding_agreement.main(["--shared", str(tmp_path)]) == 2
    assert "no folder" in capsys.readouterr().err


@pytest.mark.slow
def test_the_bars_are_met(shared: Path) -> None:
    assert sharding_agreement.main(["--shared", str(shared)]) == 0
