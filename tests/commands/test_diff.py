"""`hloopt diff`: exit codes and formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.analysis.content import CLASSES
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


EXCHANGE = """HloModule exchange, is_scheduled=true, num_partitions=8

wrapped {
  q = f32[64,64] parameter(0)
  ROOT a = f32[64,64] all-to-all(q), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}},
    dimensions={0}
}

ENTRY e {
  p = f32[64,64] parameter(0)
  s = ((f32[64,64]), f32[64,64]) async-start(p), calls=wrapped
  ROOT d = f32[64,64] async-done(s)
}
"""
WAITING = EXCHANGE.replace(
    "calls=wrapped", 'calls=wrapped, backend_config={"collective_backend_config":{"is_sync":true}}'
)


@pytest.fixture
def exchanges(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "exchange.hlo", tmp_path / "waiting.hlo"]
    for path, text in zip(paths, (EXCHANGE, WAITING), strict=True):
        path.write_text(text)
    return list(map(str, paths))


@pytest.mark.parametrize("options", [[], ["--target", "h100_sxm"], ["--cost-model", "fixed"]])
@pytest.mark.parametrize("order", [1, -1])
def test_no_preset_is_taken_for_modules_that_tell_differently(
    options: list[str], order: int, exchanges: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *exchanges[::order], *options]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "schedules are not compared" in out
    assert "--preset takes one of them for both" in out
    assert "makespan" not in out
    assert main(["diff", *exchanges[::order], *options, "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["schedule"] is None
    assert "--preset" in data["not_compared"][0]


@pytest.mark.parametrize("preset", ["xla-gpu", "xla-generic"])
def test_a_collective_takes_as_long_when_the_program_waits_for_it(
    preset: str, exchanges: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--target", "h100_sxm", "--preset", preset, "--format", "json"]
    assert main(["diff", *exchanges, *options]) == 1
    times = json.loads(capsys.readouterr().out)["schedule"]
    assert times["preset"] == preset
    assert times["doubts"] == []
    before, after = times["before"]["makespan"], times["after"]["makespan"]
    assert before == pytest.approx(after)
    assert 20 < before < 100
    for path in exchanges:
        assert main(["schedule", path, *options[:4]]) == 0
        assert " ms " not in capsys.readouterr().out


def test_a_model_without_its_target_is_refused_before_a_file_is_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["diff", "none.hlo", "nothing.hlo", "--cost-model", "sol"]) == 2
    err = capsys.readouterr().err
    assert "cost model 'sol' needs a target" in err
    assert "b200, gb200_nvl72, gb300_nvl72, h100_sxm, h200_sxm" in err


def test_opt_runs_both_on_the_streams_that_its_scheduler_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "step.hlo", tmp_path / "out.hlo"
    path.write_text(SCHEDULED)

    def schedule_of(passes: str) -> dict[str, object]:
        command = ["opt", str(path), "-o", str(out), "--format", "json", "--passes", passes]
        assert main(command) == 0
        [module] = json.loads(capsys.readouterr().out)[0]["modules"]
        found = module["schedule"]
        assert isinstance(found, dict)
        return found

    scheduled = schedule_of("latency-hiding-scheduler{preset=xla-gpu,target=b200}")
    assert (scheduled["preset"], scheduled["unit"]) == ("xla-gpu", "us")
    generic = schedule_of("latency-hiding-scheduler{target=b200}")
    assert generic["preset"] == "xla-generic"
    path.write_text(EXCHANGE)  # the pass writes what tells that it is for a GPU
    marked = schedule_of("gpu-convert-async-collectives-to-sync")
    assert (marked["preset"], marked["unit"], marked["doubts"]) == ("xla-gpu", "cycles", [])
    assert "--target" not in str(marked)


def test_help_lists_the_classes_of_content(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"leave classes of content out: {', '.join(CLASSES)} --exit-zero" in printed
