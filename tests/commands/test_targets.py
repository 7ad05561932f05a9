"""`hloopt targets`, and that no command takes a target by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.reports.schedule.test_schedule import TEXT

from hloopt.cli import main
from hloopt.cost_models import NO_TARGET
from hloopt.targets import load_target, target_names

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "step.hlo"
    path.write_text(TEXT)
    return str(path)


def test_all_targets_are_listed(capsys: Capture) -> None:
    assert main(["targets"]) == 0
    out = capsys.readouterr().out
    for name in target_names():
        (line,) = [line for line in out.splitlines() if line.startswith(f"{name} ")]
        assert ("sol" in line.split()) is (load_target(name).gpu is not None)
    assert "79.1 GiB    3.4 TB/s  989.4 T" in out


@pytest.mark.parametrize("name", target_names())
def test_a_target_has_all_its_figures_with_sources(name: str, capsys: Capture) -> None:
    target = load_target(name)
    assert main(["targets", name]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith(f"{name}: {target.title} matrix ")
    for source in (*target.sources, *(link.source for link in target.links)):
        assert source in out
    if target.gpu is not None:
        assert target.gpu.source in out
        assert f"cores {target.gpu.cores}" in out
    assert main(["targets", name, "--format", "json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    assert data["memory_bytes"] == target.memory_size
    assert data["matrix_flops_per_second"] == dict(target.matrix)
    assert (data["gpu"] is None) is (target.gpu is None)


def test_a_list_as_json_has_all(capsys: Capture) -> None:
    assert main(["targets", "--format", "json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == target_names()


def test_a_file_is_a_target(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text(
        "title: our chip\nmatrix_teraflops: {f32: 1}\nmatrix_source: measured\n"
        "memory: {gigabytes: 8, gigabytes_per_second: 100}\nmemory_source: data sheet\n"
    )
    assert main(["targets", str(path)]) == 0
    out = capsys.readouterr().out
    assert "ours: our chip" in out
    assert "vector: no figure is published" in out
    assert "no cost model `sol`" in out


def test_the_nearest_name_is_told(capsys: Capture) -> None:
    assert main(["targets", "h100"]) == 2
    assert "did you mean 'h100_sxm'?" in capsys.readouterr().err
    assert main(["targets", "none.yaml"]) == 2
    assert "cannot read none.yaml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["cost"], "no target: no times"),
        (["cost", "--latency"], NO_TARGET),
        (["schedule"], NO_TARGET),
        (["schedule", "--explain", "work"], "cycles from the end"),
        (["analyze", "overlap"], NO_TARGET),
        (["memory"], "peak"),
        (["memory", "--advice"], "no target: no times"),
    ],
    ids=" ".join,
)
def test_without_a_target_nothing_is_a_time(
    command: list[str], says: str, module: str, capsys: Capture
) -> None:
    options = command[2:] if command[:1] == ["analyze"] else command[1:]
    name = command[: len(command) - len(options)]
    assert main([*name, module, *options]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert says in out
    assert "H100" not in out
    for unit in (" us ", " ns ", " ms ", " us,", " ns,"):
        assert unit not in out
    if "--explain" in options:
        return
    assert main([*name, module, *options, "--format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report.get("target") is None
    assert report.get("seconds_per_unit") is None


@pytest.mark.parametrize(
    "command",
    [
        ["cost", "--html", "x.html"],
        ["schedule", "--share-bandwidth"],
        ["schedule", "--cost-model", "sol"],
        ["analyze", "overlap", "--cost-model", "sol"],
        ["opt", "--passes", "latency-hiding-scheduler{cost_model=sol}"],
    ],
    ids=" ".join,
)
def test_what_needs_a_target_lists_them(command: list[str], module: str, capsys: Capture) -> None:
    assert main([*command, module]) == 2
    err = capsys.readouterr().err
    assert "needs a target" in err
    assert "b200" in err
    assert "hloopt targets" in err


def test_advice_has_times_of_the_target_that_is_named(module: str, capsys: Capture) -> None:
    advice = ["memory", module, "--advice", "--format", "json"]
    assert main(advice) == 0
    (bare,) = json.loads(capsys.readouterr().out)
    assert bare["advice"]["target"] is None
    times = ("seconds", "transfer_seconds", "idle_seconds")
    for kind in ("rematerializations", "offloads"):
        for item in bare["advice"][kind]:
            assert {item[name] for name in times if name in item} == {None}
    assert main([*advice, "--target", "h100_sxm"]) == 0
    (full,) = json.loads(capsys.readouterr().out)
    assert full["advice"]["target"] == "NVIDIA H100 SXM, 80 GB"


def test_a_pipeline_is_for_a_target_that_there_is(
    module: str, tmp_path: Path, capsys: Capture
) -> None:
    pipeline = tmp_path / "p.yaml"
    for target in ("h100_sxm", "H100-SXM", "ours.yaml"):
        pipeline.write_text(f"target: {target}\npasses: [dce]\n")
        assert main(["opt", module, "-p", str(pipeline)]) == 0
        capsys.readouterr()
    pipeline.write_text("target: h100_smx\npasses: [dce]\n")
    assert main(["opt", module, "-p", str(pipeline)]) == 2
    err = capsys.readouterr().err
    assert "no target 'h100_smx'" in err
    assert f"--> {pipeline}:1:9" in err
    assert "did you mean 'h100_sxm'?" in err
