"""`hloopt analyze overlap` and `hloopt schedule` tell one story."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hloopt.cli import main
from hloopt.cost_models import NO_TARGET

SCHEDULED = [
    *("branches.after_optimizations.hlo", "fori_loop.after_optimizations.hlo"),
    *("mlp_psum_8dev.after_optimizations.hlo", "ring_matmul_8dev.after_optimizations.hlo"),
    "transformer_scan_8dev.after_optimizations.hlo.gz",
]
"""By XLA:CPU: all collectives are synchronous."""
UNSCHEDULED = [
    *("mlp_psum_8dev.after_spmd_partitioning.hlo", "ring_matmul_8dev.after_spmd_partitioning.hlo"),
    "transformer_scan_8dev.after_spmd_partitioning.hlo",
]
"""Scheduled here by the shipped pipeline `overlap`."""
OPTIONS = [
    ["--cost-model", "fixed"],
    ["--cost-model", "sol", "--target", "b200"],
    ["--target", "h100_sxm", "--share-bandwidth", "--preset", "xla-generic"],
    ["--cost-model", "fixed", "--preset", "xla-gpu"],
    ["--target", "h100_sxm", "--scheduler", "parallel_collective_overlap_limit=2"],
]


@pytest.fixture
def testdata(root: Path) -> Path:
    return root / "testdata"


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def assert_agree(
    path: Path, options: Sequence[str], capsys: pytest.CaptureFixture[str], *, waits: bool
) -> None:
    """All operations of these modules are collectives: the totals have to be one."""
    (schedule,) = asked(capsys, "schedule", str(path), *options)
    (overlap,) = asked(capsys, "analyze", "overlap", str(path), *options)
    assert overlap["exposed"] == pytest.approx(schedule["exposed"], rel=1e-12)
    assert (overlap["exposed"] > 0) is waits
    computations = {entry["name"]: entry for entry in schedule["computations"]}
    for row in overlap["computations"]:
        other = computations[row["computation"]]
        assert (row["runs"], row["duration"]) == (other["runs"], other["duration"])
        assert row["exposed"] == other["exposed"]
    total = sum(o["bytes"] * o["runs"] for o in schedule["operations"])
    assert overlap["bytes"] == total


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("name", SCHEDULED)
def test_exposed_time_is_that_of_schedule(
    name: str, options: list[str], testdata: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_agree(testdata / name, options, capsys, waits="8dev" in name)
    (schedule,) = asked(capsys, "schedule", str(testdata / name), *options)
    assert {operation["hidden"] for operation in schedule["operations"]} <= {0.0}


@pytest.mark.parametrize("name", UNSCHEDULED)
def test_exposed_time_is_that_of_schedule_behind_the_pipeline(
    name: str, testdata: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scheduled.hlo"
    arguments = ["-p", "overlap", "--no-report", "-o", str(path)]
    assert main(["opt", str(testdata / name), *arguments]) == 0
    for options in OPTIONS:
        assert_agree(path, options, capsys, waits=True)


def test_without_a_word_on_times_there_are_none(
    testdata: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(testdata / SCHEDULED[2])
    (abstract,) = asked(capsys, "analyze", "overlap", path)
    assert (abstract["unit"], abstract["exposed_seconds"]) == ("cycles", None)
    assert abstract["exposed"] > 0
    assert NO_TARGET in abstract["assumptions"]
    (real,) = asked(capsys, "analyze", "overlap", path, "--target", "h100_sxm")
    assert (real["unit"], real["cost_model"]) == ("us", "sol")
    assert real["exposed_seconds"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "h100_smx"], "did you mean"),
        (
            ["--target", "tpu_v5p", "--cost-model", "sol"],
            "cost model 'sol' knows too little of the target tpu_v5p",
        ),
        (["--cost-model", "profile"], "needs a file"),
        (["--cost-model", "sol"], "cost model 'sol' needs a target"),
        (["--share-bandwidth"], "--share-bandwidth needs a target"),
        (["--scheduler", "explain=x"], "`hloopt schedule --explain` does"),
        (["--devices", "0"], "0 is not in the range"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], message: str, testdata: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "overlap", str(testdata / SCHEDULED[2]), *arguments]) == 2
    assert message in capsys.readouterr().err
