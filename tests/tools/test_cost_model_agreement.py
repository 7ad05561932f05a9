"""The comparison with XLA's speed-of-light estimator is strict; the shipped tables are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import cost_model_agreement
import make_performance_tables
from cost_model_agreement import (
    BAR,
    SUM_BAR,
    Comparison,
    bars,
    by_module,
    compare_generated,
    compare_module,
    recorded_answers,
    summary,
)
from generated_costs import all_reduces, module_text, products
from gpu_costs import Costs
from hloopt.analysis.latency import Origin, Time
from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel
from hloopt.targets import load_target
from hloopt.text import parse_module
from hloopt.verifier import verify_module


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
    assert all(abs(row.total) < SUM_BAR for row in by_module(found))


def test_the_sum_tells_what_medians_hide() -> None:
    found = [*(comparison(1.0, 1.0) for _ in range(9)), comparison(13.0, 11.0)]
    row = summary(("x",), found)
    assert row.median == 0
    assert row.total == pytest.approx(0.1)


def test_random_modules_are_valid_and_those_of_their_seed() -> None:
    for make in (products, all_reduces):
        text = module_text(make(7, 40))
        assert text == module_text(make(7, 40))
        assert text != module_text(make(8, 40))
        assert not verify_module(parse_module(text))


def test_random_products_and_all_reduces_are_compared() -> None:
    target = load_target("h100_sxm")

    def answers(text: str) -> Costs:
        """The times of the model itself, doubled for the products of the first half."""
        model, costs = SpeedOfLightModel(target), Costs(node={}, latency={})
        for instruction in parse_module(text).entry.instructions:
            if instruction.name.startswith("q") and not instruction.name.endswith("_done"):
                time = model.node_time(instruction).cycles
                costs["node"][instruction.name] = time * (1 + (len(costs["node"]) < 5))
                latency = model.collective_time(instruction)
                if latency is not None:
                    costs["latency"][instruction.name] = latency.cycles
        return costs

    found = compare_generated(10, 1, target, answers)
    assert [(row.label, row.times) for row in by_module(found)] == [
        (("products",), 10),
        (("all-reduces",), 10),
    ]
    assert sum(c.error == pytest.approx(0.5) for c in found) == 5
    assert sum(c.error == 0 for c in found) == 15


def test_the_tables_are_those_of_xla(shared: Path) -> None:
    assert make_performance_tables.main(["--shared", str(shared), "--check"]) == 0
