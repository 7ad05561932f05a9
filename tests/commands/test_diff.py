"""`hloopt diff`: exit codes and formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

BEFORE = (
    "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} negate(p)\n}\n"
)
AFTER = BEFORE.replace("negate", "abs")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "before.hlo", tmp_path / "after.hlo"]
    for path, text in zip(paths, (BEFORE, AFTER), strict=True):
        path.write_text(text)
    return list(map(str, paths))


def test_the_exit_code_says_whether_modules_differ(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", files[0], files[0]]) == 0
    capsys.readouterr()
    assert main(["diff", *files]) == 1
    out, err = capsys.readouterr()
    assert "negate" in out
    assert err == ""


def test_json_is_valid(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *files, "--format", "json"]) == 1
    assert "negate" in json.dumps(json.loads(capsys.readouterr().out))


def test_a_file_that_cannot_be_read_is_an_error(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", files[0], files[1] + "x"]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_memory_is_compared_where_modules_differ(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(files[1]).write_text(BEFORE.replace("negate(p)", "reverse(p), dimensions={0}"))
    assert main(["diff", *files]) == 1
    out = capsys.readouterr().out
    assert "arguments     16 B    16 B        =" in out
    assert main(["diff", *files, "--no-memory"]) == 1
    assert "arguments" not in capsys.readouterr().out
    assert main(["diff", files[0], files[0], "--memory"]) == 0
    assert "arguments" not in capsys.readouterr().out


def test_json_has_the_memory_of_both(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path(files[1]).write_text(BEFORE.replace("4]", "8]"))
    assert main(["diff", *files, "--format", "json"]) == 1
    memory = json.loads(capsys.readouterr().out)["memory"]
    assert memory["before"]["peak_memory_in_bytes"] == 32
    assert memory["after"]["peak_memory_in_bytes"] == 64
    assert {buffer["name"] for buffer in memory["left_peak"]} == {"p", "q"}
    assert {buffer["size"] for buffer in memory["entered_peak"]} == {32}


def test_a_module_whose_memory_is_unknown_is_compared_all_the_same(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    alias = "HloModule m, input_output_alias={ {7}: (0, {}) }"
    Path(files[1]).write_text(AFTER.replace("HloModule m", alias))
    assert main(["diff", *files]) == 1
    out = capsys.readouterr().out
    assert "negate" in out
    assert "no memory report: input_output_alias" in out


SCHEDULED = """HloModule m, is_scheduled=true, num_partitions=8

ENTRY e {
  p = bf16[512,4096] parameter(0)
  q = bf16[4096,4096] parameter(1)
  s = (bf16[512,4096], bf16[4096,4096]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = bf16[4096,4096] all-gather-done(s)
  w = bf16[4096,4096] dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (bf16[4096,4096], bf16[4096,4096]) tuple(d, w)
}
"""
WORK, DONE = SCHEDULED.splitlines()[7], SCHEDULED.splitlines()[6]
BETTER = SCHEDULED.replace(f"{DONE}\n{WORK}", f"{WORK}\n{DONE}")


def test_schedules_are_compared_by_a_model_of_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(tmp_path / "before.hlo"), str(tmp_path / "after.hlo")]
    for path, text in zip(paths, (SCHEDULED, BETTER), strict=True):
        Path(path).write_text(text)
    options = ["--target", "h100_sxm", "--format", "json"]
    assert main(["diff", *paths, *options]) == 1
    times = json.loads(capsys.readouterr().out)["schedule"]
    assert (times["cost_model"], times["target"]) == ("sol", "h100_sxm")
    assert times["after"]["makespan"] < times["before"]["makespan"]
    assert main(["diff", *paths, "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["schedule"]["cost_model"] == "fixed"
    assert main(["diff", *paths, "--profile", str(tmp_path / "none.pbtxt")]) == 2


def test_opt_judges_a_schedule_by_the_times_it_was_made_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "step.hlo", tmp_path / "out.hlo"
    path.write_text(SCHEDULED)
    command = ["opt", str(path), "-o", str(out), "--format", "json", "--passes"]
    assert main([*command, "latency-hiding-scheduler{preset=xla-gpu,target=b200}"]) == 0
    [module] = json.loads(capsys.readouterr().out)[0]["modules"]
    assert module["schedule"]["target"] == "b200"
