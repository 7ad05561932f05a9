"""`xla-stage` and `xla` in pipelines, with a compiler that compiles nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.compilers.fake_xla import LOG, FakeXla

import hloopt
from hloopt.cli import main
from hloopt.files import read_source
from hloopt.pass_framework.registry import create_pass

Capture = pytest.CaptureFixture[str]
WHOLE = """HloModule m, entry_computation_layout={(f32[8]{0})->f32[8]{0}}, num_partitions=2

ENTRY %e (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0), sharding={devices=[2]<=[2]}
  %dead = f32[8]{0} abs(%p)
  ROOT %r = f32[8]{0} negate(%p), sharding={devices=[2]<=[2]}
}
"""
PARTS = """HloModule m, entry_computation_layout={(f32[4]{0})->f32[4]{0}}, num_partitions=2

ENTRY %e_spmd (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}
  ROOT %r = f32[4]{0} negate(%p)
}
"""
SHARDY = WHOLE.replace("=2\n", "=2, frontend_attributes={xla.sdy.meshes={mesh = x}}\n")
SPMD = "after_spmd_partitioner"
BEHIND_PASS = "0003.spmd-partitioner.after_spmd-partitioning.before_call-inliner"
STEP = "xla-stage{stage=spmd,target=h100_sxm}"
NOTE = "without a device or autotuning, with the flags given only: it is not your compile"


@pytest.fixture
def xla(xla: FakeXla) -> FakeXla:
    Path("m.hlo").write_text(WHOLE, encoding="utf-8")
    xla.stages[SPMD] = lambda text: PARTS
    return xla


def opt(passes: str, *more: str) -> int:
    return main(["opt", "m.hlo", "--passes", passes, "-o", "out.hlo", *more])


def flags(text: str) -> dict[str, str]:
    return dict(flag.removeprefix("--").split("=", 1) for flag in text.split())


# -- a stage --------------------------------------------------------------------------------------


def test_a_stage_takes_the_place_of_the_module(xla: FakeXla, capsys: Capture) -> None:
    assert opt(STEP) == 0
    assert read_source("out.hlo").text == PARTS
    err = capsys.readouterr().err
    assert f"note: xla-stage: fake_plugin.so, {NOTE}\n" in err
    assert re.search(r"^xla-stage +yes +3 → 2 ", err, re.M)
    (given,) = map(flags, xla.flags)
    assert given["xla_dump_large_constants"] == "true"
    assert given["xla_dump_hlo_pass_re"] == "^spmd-partitioning$"
    assert given["xla_gpu_autotune_level"] == "0"
    assert "xla_disable_hlo_passes" not in given


def test_the_note_is_told_without_a_report_and_in_json(xla: FakeXla, capsys: Capture) -> None:
    assert opt(STEP, "--no-report") == 0
    assert capsys.readouterr().err == f"note: xla-stage: fake_plugin.so, {NOTE}\n"
    assert opt(STEP, "--format", "json") == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["modules"][0]["notes"] == [f"xla-stage: fake_plugin.so, {NOTE}"]
    assert told["modules"][0]["warnings"][0].startswith("memory is not compared: the first is not")


def test_a_note_of_several_steps_is_told_once(xla: FakeXla) -> None:
    module = hloopt.parse_module(WHOLE)
    found = hloopt.opt(module, "xla{passes=dce,target=h100_sxm},xla{passes=cse,target=h100_sxm}")
    assert found.notes == [f"xla: fake_plugin.so, {NOTE}"]


def test_a_compiler_without_a_dump_of_the_stage_has_that_of_the_pass(xla: FakeXla) -> None:
    xla.stages = {BEHIND_PASS: lambda text: PARTS}
    assert opt(STEP) == 0
    assert read_source("out.hlo").text == PARTS
    line = ["xla", "compile", "m.hlo", "--target", "h100_sxm", "--stage", "spmd", "-o", "s.hlo"]
    assert main(line) == 0
    assert read_source("s.hlo").text == PARTS


def test_a_stage_that_the_compile_has_not(xla: FakeXla, capsys: Capture) -> None:
    xla.stages = {}
    assert opt(STEP) == 2
    err = capsys.readouterr().err
    assert "this compile has no stage spmd" in err
    assert "--passes:1:1" in err


def test_the_first_and_the_last_stage(xla: FakeXla) -> None:
    assert opt("xla-stage{stage=hlo,target=h100_sxm}") == 0
    assert "dead" not in read_source("out.hlo").text
    assert "xla_dump_hlo_pass_re" not in flags(xla.flags[0])
    module = hloopt.parse_module(ONE)
    assert not hloopt.opt(module, "xla-stage{stage=hlo-before,target=h100_sxm}").changed
    assert hloopt.print_module(module) == ONE


def test_each_stage_is_held_to_what_it_preserves() -> None:
    stages = {"hlo-before": "rounding", "spmd": "finite", "hlo": "precision"}
    for stage, preserved in stages.items():
        assert create_pass("xla-stage", {"stage": stage}).preserves == preserved


def test_the_same_twice_is_the_same_text(xla: FakeXla) -> None:
    assert opt(STEP) == 0
    first = read_source("out.hlo").text
    assert opt(STEP) == 0
    assert read_source("out.hlo").text == first


def test_what_is_behind_the_stage_may_fail(xla: FakeXla, capsys: Capture) -> None:
    xla.answer = {"refused": "INVALID_ARGUMENT: no code for it"}
    assert opt(STEP) == 0
    assert read_source("out.hlo").text == PARTS
    assert "note: xla-stage: behind the stage XLA refuses the program: no code for it" in (
        capsys.readouterr().err
    )


# -- passes ---------------------------------------------------------------------------------------


def test_a_stage_of_a_compile_that_was_killed_may_be_half_written(
    xla: FakeXla, capsys: Capture
) -> None:
    xla.answer, xla.ending, xla.is_reported = None, (-9, False), False
    assert opt(STEP) == 3
    assert "error[HLO704]: pass 'xla-stage' failed: XLA died of SIGKILL" in capsys.readouterr().err


def test_passes_alone(xla: FakeXla, capsys: Capture) -> None:
    assert opt('xla{passes=[cse,dce,cse],target=h100_sxm,flags=["xla_a=b"]}') == 0
    assert "dead" not in read_source("out.hlo").text
    assert f"note: xla: fake_plugin.so, {NOTE}" in capsys.readouterr().err
    first, second = map(flags, xla.flags)
    assert first["xla_a"] == second["xla_a"] == "b"
    assert "xla_disable_hlo_passes" not in first
    assert second["xla_disable_hlo_passes"] == ""
    assert second["xla_dump_hlo_pass_re"] == "^cse$|^dce$"
    assert opt("xla{passes=dce,target=h100_sxm}") == 0
    assert flags(xla.flags[3])["xla_disable_hlo_passes"] == "cse"


def test_passes_that_change_nothing_leave_the_module(xla: FakeXla) -> None:
    module = hloopt.parse_module(WHOLE)
    found = hloopt.opt(module, "fixpoint(xla{passes=cse,target=h100_sxm})")
    assert (found.changed, found.applications.made, len(found.runs)) == (False, 0, 1)
    assert hloopt.print_module(module) == WHOLE


def test_what_follows_the_last_change_is_not_taken_over(xla: FakeXla) -> None:
    """XLA schedules, say, before the last of the places at which a pass runs."""
    xla.stages["0004.late.after_pipeline-start.before_dce"] = lambda text: PARTS
    xla.stages["0005.late.after_dce.before_pipeline-end"] = lambda text: PARTS
    assert opt("xla{passes=dce,target=h100_sxm}") == 0
    text = read_source("out.hlo").text
    assert "dead" not in text
    assert "f32[8]" in text


def test_a_pass_that_was_not_reached_is_the_failure(xla: FakeXla, capsys: Capture) -> None:
    xla.log += xla.log.splitlines()[1].replace("dce", "late") + "\n"
    xla.answer, xla.ending, xla.is_reported = None, (-6, False), False
    assert opt("xla{passes=[dce,late],target=h100_sxm}") == 3
    assert "error[HLO704]: pass 'xla' failed: XLA died of SIGABRT" in capsys.readouterr().err


# -- refusals and failures ------------------------------------------------------------------------

ONE = WHOLE.replace(", num_partitions=2", "").replace(", sharding={devices=[2]<=[2]}", "")
UNTOLD = WHOLE.replace("negate(%p), sharding={devices=[2]<=[2]}", "negate(%p)")
MADE = PARTS.replace("negate(%p)", "all-to-all(%p), channel_id=1, dimensions={0}")
ELIDED = ONE.replace("abs(%p)", "constant({...})")
SPMD_ALONE = "xla{passes=spmd-partitioning,target=h100_sxm}"


@pytest.mark.parametrize(
    ("text", "passes", "message"),
    [
        (ONE, STEP, "xla-stage: XLA does not partition it: it is for one partition"),
        (ONE, STEP.replace("}", ",devices=8}"), "it is for one partition"),
        (MADE, STEP, "XLA does not partition it: it is partitioned, %r is what the partitioner"),
        (UNTOLD, STEP, "xla-stage: it may be partitioned: only arguments have shardings"),
        (MADE, SPMD_ALONE, "xla: XLA does not partition it: it is partitioned, %r is"),
        (SHARDY, SPMD_ALONE, "spmd-partitioning alone does not read the shardings of Shardy"),
        (ELIDED, STEP, "xla-stage: 1 constant has no values in the text: XLA would take zeros"),
    ],
)
def test_modules_that_are_refused(
    text: str, passes: str, message: str, xla: FakeXla, capsys: Capture
) -> None:
    Path("m.hlo").write_text(text, encoding="utf-8")
    assert opt(passes) == 3
    err = capsys.readouterr().err
    assert f"error[HLO703]: {passes[: passes.index('{')]}: " in err
    assert message in err
    assert xla.flags == []
    assert not Path("out.hlo").exists()


def test_shardy_reads_its_shardings_before_the_partitioner(xla: FakeXla) -> None:
    Path("m.hlo").write_text(SHARDY, encoding="utf-8")
    for name in ("shardy-xla", "spmd-partitioning"):
        xla.log += xla.log.splitlines()[1].replace("dce", name) + "\n"
    xla.stages = {
        "0003.spmd-partitioner.after_pipeline-start.before_shardy-xla": str,
        "0004.spmd-partitioner.after_shardy-xla.before_spmd-partitioning": str,
        BEHIND_PASS.replace("0003", "0005"): lambda text: PARTS,
    }
    assert opt("xla{passes=[shardy-xla,spmd-partitioning],target=h100_sxm}") == 0
    assert read_source("out.hlo").text == PARTS


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ("xla-stage", "error[HLO603]: xla-stage needs a stage"),
        ("xla-stage{target=h100_sxm}", "error[HLO603]: xla-stage needs a stage"),
        ("xla-stage{stage=ptx}", "error[HLO603]: option 'stage' takes"),
        ("xla", "error[HLO603]: xla needs passes of XLA"),
        ("xla-stage{stage=spmd}", "error[HLO603]: xla-stage has no target to compile for"),
        ("xla{passes=dce}", "error[HLO603]: xla has no target to compile for"),
        ("xla{passes=dce,devices=0}", "error[HLO603]: option 'devices' is more than 0"),
        ("xla{passes=dce,timeout=0s}", "error[HLO603]: option 'timeout' is more than 0"),
        ("xla{passes=dec,target=h100_sxm}", "error[HLO021]: XLA does not run a pass 'dec'"),
        ("xla{passes=tidy,target=h100_sxm}", "error[HLO021]: 'tidy' is a pipeline of XLA"),
        (
            'xla{passes=dce,target=b200,flags=["a=b"]}',
            "error[HLO020]: 'a=b' is no flag of XLA",
        ),
        (
            'xla{passes=dce,target=b200,flags=["xla_dump_to=b"]}',
            "error[HLO020]: xla_dump_to is not free here",
        ),
        ("xla{passes=dce,target=b200,plugin=cuda14}", "error[HLO019]: no plug-in 'cuda14' is"),
        ("xla{passes=dce,target=nothing}", "error[HLO014]: no target 'nothing'"),
        ("xla{passes=dce,target=tpu_v5p}", "the target has no section cuda"),
    ],
)
@pytest.mark.usefixtures("xla")
def test_mistakes_are_shown_where_they_are(passes: str, message: str, capsys: Capture) -> None:
    assert opt(passes) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "--> --passes:1:" in err
    assert err.count("error[") == 1


def test_replicas_that_devices_do_not_divide_into(xla: FakeXla, capsys: Capture) -> None:
    text = WHOLE.replace("num_partitions=2", "replica_count=2, num_partitions=2")
    Path("m.hlo").write_text(text, encoding="utf-8")
    assert opt(STEP.replace("}", ",devices=3}")) == 2
    assert "error[HLO600]: 3 devices cannot be 2 replicas" in capsys.readouterr().err


UNKNOWN = "2026-11-27 x.cc:211] Unknown flag in XLA_FLAGS: --xla_nonsense=1\n"


@pytest.mark.parametrize("step", [STEP, "xla{passes=dce,target=h100_sxm}"])
@pytest.mark.parametrize(
    ("answer", "ending", "log", "code", "messages"),
    [
        ({"refused": "X: cause\nmore"}, (0, False), LOG, 3, ("error[HLO704]: pass '", "more")),
        (None, (-11, False), LOG, 3, ("XLA died of SIGSEGV; the last pass that began is cse",)),
        (None, (-9, True), LOG, 3, ("XLA did not end within 600 s", "`timeout` of the step")),
        (None, (-6, False), UNKNOWN, 2, ("error[HLO020]: this XLA does not know xla_nonsense",)),
        ({"unfit": "too old"}, (0, False), "", 2, ("error[HLO019]: too old",)),
    ],
)
def test_failures_are_one_message(
    step: str,
    answer: dict[str, object] | None,
    ending: tuple[int, bool],
    log: str,
    code: int,
    messages: tuple[str, ...],
    xla: FakeXla,
    capsys: Capture,
) -> None:
    xla.answer, xla.ending, xla.log, xla.is_reported = answer, ending, log, False
    xla.stages, xla.dead = {}, ""
    if step != STEP:
        xla.log = log.replace("dce", "other")  # it is not reached
    assert opt(step, "--repro-dir", "repro") == code
    err = capsys.readouterr().err
    assert all(message in err for message in messages), err
    assert err.count("error[") == 1
    assert "Traceback" not in err
    assert Path("repro").exists() == (code == 3)


def test_a_failure_can_be_skipped(xla: FakeXla, capsys: Capture) -> None:
    xla.answer, xla.ending, xla.stages = None, (-11, False), {}
    xla.is_reported = False
    text = "target: h100_sxm\npasses:\n  - xla-stage: spmd\n    on_error: skip\n  - dce\n"
    Path("p.yaml").write_text(text, encoding="utf-8")
    assert main(["opt", "m.hlo", "-p", "p.yaml", "-o", "out.hlo"]) == 0
    assert "dead" not in read_source("out.hlo").text
    err = capsys.readouterr().err
    assert "warning: pass 'xla-stage' failed and was skipped: XLA died of SIGSEGV" in err
    assert "note: xla-stage" not in err


def test_a_failure_can_be_repeated(xla: FakeXla, capsys: Capture) -> None:
    xla.answer, xla.ending, xla.stages = None, (-11, False), {}
    xla.is_reported = False
    assert opt(f"dce,{STEP}", "--repro-dir", "repro") == 3
    first = capsys.readouterr().err
    (path,) = Path("repro").iterdir()
    assert f"hloopt opt --repro {path}" in first
    assert main(["opt", "--repro", str(path), "--repro-dir", "repro"]) == 3
    second = capsys.readouterr().err
    assert second.splitlines()[0] == first.splitlines()[0]


@pytest.mark.parametrize("target", ["h100_sxm", "cpu"])
def test_without_a_compiler_the_message_says_what_to_install(
    target: str, xla: FakeXla, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv("HLOOPT_XLA_PLUGIN")
    monkeypatch.setattr("hloopt.compilers.plugins.find_spec", lambda name: None)
    assert opt(STEP.replace("h100_sxm", target)) == 2
    err = capsys.readouterr().err
    assert "error[HLO019]: the compiler of XLA:" in err
    assert "pip install 'hloopt[xla" in err
    assert main(["passes", "xla-stage"]) == 0
    assert opt("dce") == 0
