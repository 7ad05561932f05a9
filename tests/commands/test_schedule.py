"""`hloopt schedule`: files, formats, errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.reports.schedule.test_schedule import TEXT

from hloopt.cli import main


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "step.hlo"
    path.write_text(TEXT)
    return str(path)


def test_pages_and_traces_are_files_of_their_own(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, trace = tmp_path / "t.html", tmp_path / "t.json"
    assert main(["schedule", module, "--html", str(page), "--trace", str(trace)]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"wrote {page}\nwrote {trace}\n"
    assert "makespan" in captured.out
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(trace.read_text())["traceEvents"]


def test_standard_output_has_one_thing(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", module, "--trace", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["traceEvents"]


def test_pictures_are_of_one_file(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.hlo").write_text(TEXT)
    assert main(["schedule", str(tmp_path), "--html", "x.html"]) == 2
    assert "--html is for one file, not 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "h100"], "no target 'h100'"),
        (["--cost-model", "table"], "needs a file"),
        (["--cost-table", "none.json"], "cannot read none.json"),
        (["--limit", "much"], "no amount"),
        (["--devices", "0"], "0 is not in the range"),
        (["--explain", "gathr"], "did you mean 'gather'?"),
        (["--explain", "square"], "'square' is a computation"),
        (["--explain", "work", "--html", "x.html"], "--explain draws no timeline"),
        (["--scheduler", "all_gather_overlap_limit"], "expected '='"),
        (["--scheduler", "all_gather_overlap_limit=-1"], "it takes 0 or more"),
        (["--scheduler", "hard_memory_limit=true"], "needs a memory_limit"),
        (["--scheduler", "preset=xla-gpu"], "--preset does"),
        (["--scheduler", "search={budget=1s}"], "`hloopt opt` searches"),
        (["--scheduler", "explain=work"], "`hloopt schedule --explain` does"),
        (
            ["--scheduler", "memory_limit=1G", "--scheduler", "memory_limit=2G"],
            "'memory_limit' is given twice",
        ),
        (
            ["--preset", "xla-gpu", "--scheduler", "all_reduce_overlap_limit=2"],
            "more than parallel_collective_overlap_limit, which is 1",
        ),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], message: str, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", module, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_no_file_is_written_for_a_module_that_makes_no_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = tmp_path / "x.hlo", tmp_path / "x.html"
    path.write_text(TEXT.replace("ROOT r = f32[64,64]", "ROOT r = f32[64,65]"))
    assert main(["schedule", str(path), "--html", str(page)]) == 2
    assert f"--> {path}:" in capsys.readouterr().err
    assert not page.exists()


def test_times_of_a_table_are_real_ones(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "costs.json"
    table.write_text('{"node": {"work": 250}, "latency": {"gather": 1000, "reduce": 500}}')
    assert main(["schedule", module, "--cost-table", str(table)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"749\.0 us +251\.0 us +1\.0 ms .* %gather", out)
    assert "nothing is known of how long these take" in " ".join(out.split())


def test_a_schedule_that_cannot_be_found_is_a_failed_pass(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--explain", "work", "--scheduler", "hard_memory_limit=true,memory_limit=1"]
    assert main(["schedule", module, *options]) == 3
    assert "no order that needs at most 1 byte was found" in capsys.readouterr().err


def test_limits_are_those_of_the_streams(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.hlo"
    path.write_text(
        """HloModule two, is_scheduled=true
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }
ENTRY e {
  p = f32[8] parameter(0)
  one = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add
  other = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add
  a = f32[8] all-reduce-done(one)
  b = f32[8] all-reduce-done(other)
  ROOT r = f32[8] add(a, b)
}
"""
    )

    def makespan(*options: str) -> float:
        assert main(["schedule", str(path), "--format", "json", *options]) == 0
        (report,) = json.loads(capsys.readouterr().out)
        return float(report["makespan"])

    assert makespan() == makespan("--scheduler", "all_gather_overlap_limit=2") > 9000
    assert makespan("--scheduler", "all-reduce-overlap-limit=2") < 6000


def test_explanations_of_several_files_are_a_list(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.hlo").write_text(TEXT)
    assert main(["schedule", str(tmp_path), "--explain", "%work", "--format", "json"]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert [report["file"] for report in reports] == [str(tmp_path / "other.hlo"), module]
    assert all(report["explanations"][0]["instruction"] == "work" for report in reports)
    assert main(["schedule", str(tmp_path), "--explain", "%work"]) == 0
    assert capsys.readouterr().out.count("%work (fusion) in %e") == 2


@pytest.mark.parametrize("more", [[], ["--target", "h100_sxm"]])
def test_a_file_about_another_module_is_noted(
    more: list[str], module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "costs.json"
    table.write_text('{"node": {"elsewhere": 250}, "latency": {}}')
    assert main(["schedule", module, "--cost-table", str(table), *more]) == 0
    note = "knows no instruction that runs here"
    assert note in " ".join(capsys.readouterr().out.split())
    table.write_text('{"latency": {"gather": 250}}')
    assert main(["schedule", module, "--cost-table", str(table), *more]) == 0
    assert note not in " ".join(capsys.readouterr().out.split())


def test_bandwidth_can_be_shared(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", module, "--share-bandwidth", "--target", "b200"]) == 0
    assert "shares the memory bandwidth of NVIDIA B200" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("target=h10", "no target 'h10'"),
        ("cost_table=none.json", "cannot read none.json"),
        ("cost_model=table", "cost model 'table' needs a file"),
        ("explain=gathr", "did you mean 'gather'?"),
        ("preset=xla-gpu,all_gather_overlap_limit=2", "more than parallel_collective_overlap"),
    ],
)
def test_wrong_options_of_the_scheduler_are_wrong_usage(
    options: str, message: str, module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.hlo"
    passes = f"dce,latency-hiding-scheduler{{{options}}}"
    assert main(["opt", module, "--passes", passes, "-o", str(output)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "--> --passes:1:5" in captured.err
    assert not output.exists()
