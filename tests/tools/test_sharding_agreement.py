"""`tools/sharding_agreement.py`: the bars of `hloopt sharding explain`, and its speed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import pair

import sharding_agreement
from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.sharding.tags import tagged
from hloopt.text import parse_module
from sharding_agreement import chain, exact, judged, judged_all, timed
from sharding_lib import truth
from sharding_lib.truth import Pair


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


def test_a_bar_that_is_missed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = pair("gathered")
    right, wrong = (Pair("gathered", before, after, {"all-gather": name}) for name in "dw")
    assert judged_all({"own": [right]}, is_listed=False)
    assert not judged_all({"own": [wrong]}, is_listed=False)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.split() == ["own", "1", "1", "0.0%", "100.0%"]


def test_what_the_partitioner_tells_has_to_be_right(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = pair("gathered")
    text = str(after).replace('op_name="jit(f)/dot"', 'op_name="hloopt:{}"')
    tags = {own.name: tag.removeprefix("hloopt:") for tag, own in tagged(before)[1].items()}

    def partition_alone(program: Module, folder: Path) -> Module:
        if program.name == "refused":
            raise HloError("XLA refuses it")
        return parse_module(text.replace("{}", tag))

    monkeypatch.setattr(truth, "partition_alone", partition_alone)
    refused = parse_module(str(before).replace("HloModule gathered", "HloModule refused"))
    pairs = [Pair("g", before, after, {"all-gather": "d"}), Pair("r", refused, after, {})]
    tag = tags["d"]
    assert exact({"tests": pairs})
    out, err = capsys.readouterr()
    assert out.splitlines()[-1].split() == ["tests", "2", "1", "1", "1", "1"]
    assert err == "r: XLA refuses it\n"
    tag = tags["w"]
    assert not exact({"tests": pairs})


def test_the_chain_is_made_by_products() -> None:
    left, right = map(parse_module, chain(3))
    truth = {f"g{n}": f"d{n}" for n in range(3)}
    assert judged(Pair("chain", left, right, truth))["right"] == 3


def test_ten_thousand_instructions_take_less_than_three_seconds() -> None:
    for _ in range(3):  # other work of the machine makes a run slow
        seconds, count = timed()
        assert count >= 10_000
        if seconds < 3:
            break
    assert seconds < 3


def test_a_folder_that_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sharding_agreement.main(["--shared", str(tmp_path)]) == 2
    assert "no folder" in capsys.readouterr().err


@pytest.mark.slow
def test_the_bars_are_met(shared: Path) -> None:
    assert sharding_agreement.main(["--shared", str(shared)]) == 0


@pytest.mark.slow
@pytest.mark.oracle
def test_six_programs_of_jax_are_told(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax", reason="needs the extra xla")
    assert sharding_agreement.main(["--shared", str(shared), "--own", "--exact", "10"]) == 0
    out, err = capsys.readouterr()
    assert "made other collectives alone" not in err
    rows = [line.split() for line in out.splitlines() if line.startswith("own")]
    assert [row[1] for row in rows] == ["12", "12"]
