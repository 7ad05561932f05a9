"""The comparison with XLA's speed-of-light estimator is strict; the shipped tables are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import cost_model_agreement
import make_performance_tables
from cost_model_agreement import BAR, Comparison, bars, compare_module, recorded_answers, summary
from hloopt.analysis.latency import Origin, Time
from hloopt.targets import load_target


def comparison(ours: float, theirs: float, origin: Origin = Origin.ROOFLINE) -> Comparison:
    return Comparison("m", "i", "fusion kLoop", False, Time(ours, origin), theirs)


@pytest.mark.parametrize(
    ("ours", "theirs", "error"),
    [(11.0, 10.0, 0.1), (10.0, 10.0002, 0.0), (0.0002, 0.0, 0.0), (1.0, 0.0, 4000.0)],
)
def test_errors_are_relative_to_xla(ours: float, theirs: float, error: float) -> None:
    assert comparison(ours, theirs).error == pytest.approx(error)


def test_constants_do_not_make_the_bars_easier() -> None:
    found = [comparison(12.0, 10.0), *(comparison(1.0, 1.0, Origin.CONSTANT) for _ in range(9))]
    (row,) = bars(found)
    assert row.times == 1
    assert row.median == pytest.approx(0.2)
    assert row.exact == 0


def test_the_summary_has_medians_and_deciles() -> None:
    row = summary(("x",), [comparison(10 + n, 10.0) for n in range(11)])
    assert (row.times, row.median, row.ninth_decile) == (11, 0.5, 0.9)


def test_a_missed_bar_is_an_exit_code(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--shared", str(shared), "--module", "pipeline_chain"]
    assert cost_model_agreement.main(arguments) == 0
    monkeypatch.setattr(cost_model_agreement, "load_target", lambda _: load_target("b200"))
    assert cost_model_agreement.main([*arguments, "--worst", "1"]) == 1
    assert "in pipeline_chain_scan_1x4" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cost_model_agreement.main([*arguments, "--target", "b200"])


@pytest.mark.parametrize("module", ["tp_transformer_unrolled_1x8", "moe_all_to_all_1x8"])
def test_recorded_modules_agree(shared: Path, module: str) -> None:
    folder = shared / "oracle" / "gpu" / module / "sweep"
    found = compare_module(folder, load_target("h100_sxm"), recorded_answers)
    assert len(found) > 50
    assert all(row.median < BAR for row in bars(found))


def test_the_tables_are_those_of_xla(shared: Path) -> None:
    assert make_performance_tables.main(["--shared", str(shared), "--check"]) == 0
