"""The model of time that is meant, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hloopt.analysis.latency import FixedModel, GpuFixedModel, LatencyModel
from hloopt.cost_models import (
    COST_MODELS,
    NO_TARGET,
    CostModelChoice,
    describe,
    latency_model,
    model_notes,
)
from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.text import parse_module


@pytest.fixture
def module() -> Module:
    return parse_module("HloModule m ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }")


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        (CostModelChoice(), "fixed"),
        (CostModelChoice(target="b200"), "sol"),
        (CostModelChoice(target="tpu_v5p"), "roofline"),
        (CostModelChoice(target="b200", name="roofline"), "roofline"),
        (CostModelChoice(target="b200", name="fixed"), "fixed"),
        (CostModelChoice(name="sol", target="b200"), "sol"),
        (CostModelChoice(cost_table="t", target="b200"), "table"),
        (CostModelChoice(profile="p"), "profile"),
    ],
)
def test_what_is_given_says_which(choice: CostModelChoice, name: str) -> None:
    assert choice.resolved() == name


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (CostModelChoice(name="table"), "cost model 'table' needs a file"),
        (CostModelChoice(name="profile"), "cost model 'profile' needs a file"),
        (CostModelChoice(name="sol"), "cost model 'sol' needs a target"),
        (CostModelChoice(name="roofline"), "cost model 'roofline' needs a target"),
        (CostModelChoice(name="fixed", cost_table="t"), "does not read the cost_table t"),
        (CostModelChoice(name="sol", profile="p"), "does not read the profile p"),
        (CostModelChoice(cost_table="t", profile="p"), "does not read the profile p"),
        (CostModelChoice(collective_perf_table="t"), "'fixed' does not read the collective_perf_"),
        (CostModelChoice(profile="p", matmul_perf_table="t"), "'profile' does not read the matmul"),
        (CostModelChoice(smooth_tables=True), "'fixed' has no tables for smooth_tables to smooth"),
        (CostModelChoice(target="tpu_v5p", smooth_tables=True), "'roofline' has no tables"),
        (
            CostModelChoice(target="b200", name="roofline", matmul_perf_table="t"),
            "'roofline' does not read the matmul_perf_table t",
        ),
    ],
)
def test_nothing_given_is_ignored(choice: CostModelChoice, message: str) -> None:
    with pytest.raises(HloError, match=message):
        choice.resolved()


def test_the_constants_are_those_of_the_target(module: Module) -> None:
    assert type(latency_model(CostModelChoice(), module, is_gpu=False)) is FixedModel
    assert type(latency_model(CostModelChoice(), module, is_gpu=True)) is GpuFixedModel


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"node": {"n": 7}}))
    return path


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "p.pbtxt"
    path.write_text('costs { name: "n" cost_us: 9 }')
    return path


def test_every_name_has_a_model_of_its_own(module: Module, table: Path, profile: Path) -> None:
    given = CostModelChoice(target="b200")
    files = {
        "table": replace(given, cost_table=str(table)),
        "profile": replace(given, profile=str(profile)),
    }
    choices = [replace(files.get(name, given), name=name) for name in COST_MODELS]
    models = [latency_model(choice, module, is_gpu=True) for choice in choices]
    assert len({*map(type, models)}) == len(COST_MODELS)


def test_a_name_without_a_model_is_not_taken_for_another(module: Module) -> None:
    choice = CostModelChoice(name="guess", target="b200")  # type: ignore[arg-type]  # no such name
    with pytest.raises(AssertionError, match="guess"):
        latency_model(choice, module, is_gpu=True)


def test_files_come_before_a_target(
    module: Module, table: Path, profile: Path, tmp_path: Path
) -> None:
    def model(choice: CostModelChoice) -> LatencyModel:
        return latency_model(choice, module, is_gpu=True)

    root, parameter = module.entry.root, module.entry.parameters[0]
    of_table, of_profile = (
        CostModelChoice(cost_table=str(table)),
        CostModelChoice(profile=str(profile)),
    )
    for choice, cycles in ((of_table, 7), (of_profile, 9)):
        for target in (None, "h100_sxm"):
            found = model(replace(choice, target=target))
            assert found.node_cost(root) == cycles
            assert found.node_cost(parameter) == 0
    with pytest.raises(HloError, match="no target 'h100'"):
        model(CostModelChoice(target="h100"))
    with pytest.raises(HloError, match="cannot read"):
        model(CostModelChoice(cost_table=str(tmp_path / "none.json")))


def test_the_model_in_words(module: Module) -> None:
    assert describe(CostModelChoice()) == "fixed constants"
    assert describe(CostModelChoice(profile="p")) == "the profile p"
    both = describe(CostModelChoice(profile="p", target="b200"))
    assert both.startswith("the profile p, else speed of light on NVIDIA B200")
    assert model_notes(CostModelChoice(), module) == [NO_TARGET]
    assert "no times" in model_notes(CostModelChoice(name="fixed"), module)[0]
    assert model_notes(CostModelChoice(target="b200"), module) == []
    assert describe(CostModelChoice(target="tpu_v5e")).startswith("roofline of Google Cloud TPU")
    both = describe(CostModelChoice(profile="p", target="mi300x"))
    assert both.startswith("the profile p, else roofline of AMD Instinct MI300X")
    (fallback,) = model_notes(CostModelChoice(target="tpu_v5e"), module)
    assert "roofline" in fallback
    assert "sol" in fallback
    assert model_notes(CostModelChoice(target="tpu_v5e", name="roofline"), module) == []


def test_tables_of_measurements_are_named(module: Module) -> None:
    choice = CostModelChoice(
        target="b200", collective_perf_table="c", matmul_perf_table="m", smooth_tables=True
    )
    assert choice.resolved() == "sol"
    assert describe(choice).endswith(", collectives of c, products of m, tables smoothed")
    (note,) = model_notes(CostModelChoice(target="gb200_nvl72"), module)
    assert note.startswith("XLA:GPU would fall back to fixed constants on this device")
    assert "of which it has measured no matrix products" in note
    assert model_notes(CostModelChoice(target="gb300_nvl72", matmul_perf_table="m"), module) == []
